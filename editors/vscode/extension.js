// Tells VS Code how the debug adapter is started: everything else is in package.json and in `tilewright debug --dap`.
"use strict";

const vscode = require("vscode");

/** The adapter as a program: of the Python that the setting names, else the command on PATH. */
function adapter(session) {
  const python = vscode.workspace.getConfiguration("tilewright").get("python");
  const [command, ...words] = python ? [python, "-m", "tilewright"] : ["tilewright"];
  const folder = session.workspaceFolder?.uri.fsPath;
  return new vscode.DebugAdapterExecutable(command, [...words, "debug", "--dap"], folder ? { cwd: folder } : undefined);
}

exports.activate = (context) => {
  const factory = { createDebugAdapterDescriptor: adapter };
  context.subscriptions.push(vscode.debug.registerDebugAdapterDescriptorFactory("tilewright", factory));
};
