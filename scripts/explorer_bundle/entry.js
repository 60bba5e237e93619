// The parts of CodeMirror that the explorer uses, as the global `CodeMirror`.
export { Annotation, EditorState, StateEffect, StateField, RangeSetBuilder } from "@codemirror/state";
export {
  EditorView, Decoration, GutterMarker, ViewPlugin, gutter, keymap, lineNumbers,
} from "@codemirror/view";
export { StreamLanguage, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
export { simpleMode } from "@codemirror/legacy-modes/mode/simple-mode";
export { python } from "@codemirror/legacy-modes/mode/python";
export { search, searchKeymap, openSearchPanel } from "@codemirror/search";
export { presentableDiff } from "@codemirror/merge";
export { tags } from "@lezer/highlight";
