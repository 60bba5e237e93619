"""The explorer's page in a headless Chromium: what it shows, its keys, how fast it is."""

import json

import pytest

import tilewright.cute as cute
from tests.tools.explorer import cases
from tests.tools.explorer.browser import browser, opened
from tilewright.tools import demo_kernels
from tilewright.tools.arguments import parse_argument
from tilewright.tools.commands.compile import compile_argument
from tilewright.tools.explorer.collect import collected
from tilewright.tools.explorer.page import page
from tilewright.tools.function_runs import run_executor

LIMIT_MS = 50
LINES = 5000


@pytest.fixture(scope="module")
def started():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def row_sum_data():
    return collected(run_executor(*cases.row_sum()))


@pytest.fixture(scope="module")
def row_sum_page(started, row_sum_data, tmp_path_factory):
    path = tmp_path_factory.mktemp("pages") / "row_sum.html"
    path.write_text(page(row_sum_data), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def shown(started, row_sum_page):
    with opened(started, row_sum_page) as found:
        yield found


LOAD = cases.line_of(demo_kernels.row_sum_kernel, "total += x[row, column]")


def texts(shown, stage, name):
    """The lines of a pane with a class."""
    return [line.strip() for line in shown.locator(f'.pane[data-stage="{stage}"] .cm-line.{name}').all_inner_texts()]


def line_in(shown, stage, text):
    """The first line of a pane that contains a text."""
    return shown.locator(f'.pane[data-stage="{stage}"] .cm-line').filter(has_text=text).first


def held(shown, stage, text):
    """Wait until the first line that is held in a pane has a text."""
    shown.wait_for_function(
        '([stage, text]) => document.querySelector(`.pane[data-stage="${stage}"] .cm-line.pinned`)'
        "?.textContent.includes(text)",
        arg=[stage, text],
    )


def lit_count(shown, stage, count):
    shown.wait_for_function(
        '([stage, count]) => document.querySelectorAll(`.pane[data-stage="${stage}"] .cm-line.lit, '
        '.pane[data-stage="${stage}"] .cm-line.exact`).length >= count',
        arg=[stage, count],
    )


def test_a_hover_lights_the_line_in_every_stage(shown, row_sum_data):
    for key in "34":
        shown.keyboard.press(key)  # nvvm and llvm too
    line_in(shown, "source", "total += x[row, column]").hover()
    lit_count(shown, "sass", 1)
    assert texts(shown, "source", "lit") == ["total += x[row, column]"]
    assert any("cute.load" in line for line in texts(shown, "cute", "lit"))
    assert any("llvm.load" in line for line in texts(shown, "nvvm", "lit"))
    assert any("= load" in line for line in texts(shown, "llvm", "lit"))
    assert any("ld.global" in line for line in texts(shown, "ptx", "lit"))
    assert any("LDG" in line for line in texts(shown, "sass", "lit"))
    # All that is lit comes from that line, by the tables that the page was made from.
    (number,) = [at for at, (_, row) in enumerate(row_sum_data["places"]) if row == LOAD]
    for stage in row_sum_data["kernels"][0]["stages"]:
        if stage["name"] != "python":
            lines = stage["text"].splitlines()
            own = {lines[at].strip() for at, place in enumerate(stage["places"]) if place == number}
            assert {" ".join(line.split()) for line in texts(shown, stage["name"], "lit")} <= {
                " ".join(line.split()) for line in own
            }


def test_a_hover_over_machine_code_lights_its_line_of_ptx_more(shown):
    line_in(shown, "sass", "LDG").hover()
    lit_count(shown, "ptx", 1)
    (exact,) = [line for line in texts(shown, "ptx", "exact") if not line.startswith(".loc")]
    assert exact.startswith("ld.global")
    assert texts(shown, "source", "lit") == ["total += x[row, column]"]


def test_nothing_is_lit_once_the_mouse_is_gone(shown):
    line_in(shown, "source", "total += x[row, column]").hover()
    lit_count(shown, "ptx", 1)
    shown.mouse.move(900, 10)
    shown.wait_for_function("document.querySelectorAll('.cm-line.lit').length === 0")


def test_the_line_below_says_what_a_line_costs(shown):
    line_in(shown, "source", "total += x[row, column]").hover()
    lit_count(shown, "ptx", 1)
    said = shown.locator("#detail").inner_text()
    assert f"demo_kernels.py:{LOAD} total += x[row, column]" in said
    assert "16,384 sectors" in said
    assert "8 loads of 32 bits" in said


def test_arrow_keys_move_and_the_other_stages_follow(shown):
    line_in(shown, "source", "total += x[row, column]").click()
    held(shown, "source", "total += x[row, column]")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("ArrowDown")
    held(shown, "source", "total = cute.arch.warp_reduction_sum(total)")
    lit_count(shown, "ptx", 1)
    assert any("shfl.sync" in line for line in texts(shown, "ptx", "lit"))
    shown.keyboard.press("ArrowRight")
    focused = "document.activeElement.closest('.pane')?.dataset.stage"
    assert shown.evaluate(focused) == "cute"
    held(shown, "cute", "cute.warp_reduce")
    shown.keyboard.press("ArrowLeft")
    assert shown.evaluate(focused) == "source"
    shown.keyboard.press("Escape")
    shown.wait_for_function("document.querySelectorAll('.cm-line.pinned').length === 0")


def test_the_column_of_heat(shown):
    cell = shown.locator('.pane[data-stage="source"] .cm-gutter.heat .cm-gutterElement').filter(has_text="16.4k")
    assert cell.count() == 1
    assert cell.locator("div").get_attribute("title") == "16,384 sectors"
    loads = shown.locator('.pane[data-stage="sass"] .cm-gutter.heat .cm-gutterElement').filter(has_text="2.0k")
    assert loads.count() == 8
    shown.locator("#metric").select_option("wavefronts")
    cells = shown.locator('.pane[data-stage="source"] .cm-gutter.heat .cm-gutterElement div').all_inner_texts()
    assert sorted(filter(None, cells)) == ["128", "512"]


def test_keys_lead_to_the_hottest_line(shown):
    shown.keyboard.press("n")
    held(shown, "source", "total += x[row, column]")
    shown.keyboard.press("n")
    held(shown, "source", "output[row] = total")
    shown.keyboard.press("Shift+N")
    held(shown, "source", "total += x[row, column]")


def test_stages_are_shown_and_hidden_by_numbers(shown):
    shown.keyboard.press("5")
    assert shown.locator('.pane[data-stage="ptx"]').is_hidden()
    shown.keyboard.press("5")
    assert shown.locator('.pane[data-stage="ptx"]').is_visible()
    assert shown.locator('.pane[data-stage="nvvm"]').is_hidden()
    shown.keyboard.press("7")
    assert "__tilewright_control__" in shown.locator('.pane[data-stage="python"] .cm-content').inner_text()


def test_a_click_on_a_tensor_type_draws_its_layout(shown):
    shown.locator('.pane[data-stage="cute"] .layout-type').first.click()
    assert shown.locator("#drawing h2").inner_text() == "f32 in gmem: (128,1024):(1024,1)"
    assert shown.locator("#drawing svg").is_visible()
    assert "31775" in shown.locator("#drawing svg").text_content()
    shown.keyboard.press("Escape")
    assert shown.locator("#drawing").is_hidden()
    # By the keyboard, from the line of Python that stores to shared memory.
    line_in(shown, "source", "shared[warp] = total").click()
    shown.keyboard.press("Enter")
    assert shown.locator("#drawing h2").inner_text() == "f32 in smem: (32):(1)"


def test_passes_show_what_they_changed(shown):
    shown.keyboard.press("p")
    chosen = shown.locator("#pass-list li.chosen")
    assert chosen.locator("span").first.inner_text() == "place-shared-memory"
    assert any("cute.alloc" in line for line in shown.locator("#before .row-changed").all_inner_texts())
    assert any("cute.smem_base" in line for line in shown.locator("#after .row-changed").all_inner_texts())
    assert shown.locator("#before .part").count() > 0
    names = [chosen.locator("span").first.inner_text()]
    for _ in range(2):
        shown.keyboard.press("ArrowDown")
        names.append(chosen.locator("span").first.inner_text())
    assert names == ["place-shared-memory", "expand-views", "cute-to-nvvm"]
    before, after = (shown.locator(f"#{side} .cm-content") for side in ("before", "after"))
    assert "cute.load" in before.inner_text()
    assert "llvm.load" in after.inner_text()
    shown.locator("#pass-list li.idle").first.click()
    assert shown.locator("#no-change").is_visible()


def test_the_report(shown, row_sum_data):
    shown.keyboard.press("r")
    said = shown.locator("#report").inner_text()
    for name, value in row_sum_data["kernels"][0]["report"]["rows"]:
        assert name in said and value in said
    assert "Roofline on H100 SXM" in said
    assert "estimate" in said
    assert shown.locator(".bar.binds").first.inner_text().startswith("warps")
    shown.get_by_role("button", name=f"demo_kernels.py:{LOAD}").first.click()
    held(shown, "source", "total += x[row, column]")


@pytest.fixture(scope="module")
def looping_data():
    """The row sum of matrices of any size: its machine code has loops."""
    words = [compile_argument(parse_argument(word)) for word in ("f32[?,?]", "f32[?]")]
    return collected(run_executor(cute.compile(demo_kernels.row_sum, *words, target="emu"), None))


def test_the_flow_of_machine_code(started, looping_data, tmp_path):
    (tmp_path / "looping.html").write_text(page(looping_data), encoding="utf-8")
    code = looping_data["kernels"][0]["code"]
    jumps = [(at, to) for at, block in enumerate(code["blocks"]) for to in block["next"]]
    assert any(to <= at for at, to in jumps)
    with opened(started, (tmp_path / "looping.html").as_uri()) as shown:
        shown.keyboard.press("f")
        drawn = shown.locator("#flow-graph .jump").evaluate_all(
            "found => found.map(item => [Number(item.dataset.from), Number(item.dataset.to)])"
        )
        assert sorted(map(tuple, drawn)) == sorted(jumps)
        shown.keyboard.press("ArrowDown")
        chosen = shown.locator("#flow-graph .block.chosen")
        assert chosen.get_attribute("data-block") == "1"
        block = code["blocks"][1]
        lines = [line for line in range(block["first"], block["last"] + 1) if line in code["registers"]]
        cells = shown.locator("#block-text .cm-gutter.heat .cm-gutterElement div").all_inner_texts()
        assert list(map(int, filter(None, cells))) == [code["registers"][line]["live"].get("GPR", 0) for line in lines]
        shown.locator("#flow-code .link").last.click()
        goal = block["next"][-1]
        assert chosen.get_attribute("data-block") == str(goal)
        shown.locator("#flow-graph").focus()
        shown.keyboard.press("Enter")
        shown.wait_for_selector("#stages:not([hidden])")
        text = next(stage["text"] for stage in looping_data["kernels"][0]["stages"] if stage["name"] == "sass")
        first = text.splitlines()[code["blocks"][goal]["first"] - 1]
        active = shown.evaluate("getSelection().anchorNode.parentElement.closest('.cm-line').textContent")
        assert active == first


def test_a_line_of_machine_code_says_which_registers_it_uses(shown):
    line_in(shown, "sass", "SHFL").hover()
    lit_count(shown, "ptx", 1)
    said = shown.locator("#detail").inner_text()
    assert "this instruction reads R" in said and "; live at it: " in said
    shown.locator("#metric").select_option("live")
    cells = shown.locator('.pane[data-stage="sass"] .cm-gutter.heat .cm-gutterElement div').all_inner_texts()
    assert len([cell for cell in cells if cell]) > 10


def test_what_ncu_measured_can_be_chosen(started, row_sum_data, tmp_path):
    made = json.loads(json.dumps(row_sum_data))
    kernel = made["kernels"][0]
    (number,) = [at for at, (_, row) in enumerate(made["places"]) if row == LOAD]
    kernel["counts"]["python"][str(number)] |= {"ncu_sectors": 16390, "ncu_samples": 77.0}
    kernel["sampled"], kernel["all_sampled"] = {str(number): [["barrier", 1.0]]}, [["barrier", 1.0]]
    (tmp_path / "ncu.html").write_text(page(made), encoding="utf-8")
    with opened(started, (tmp_path / "ncu.html").as_uri()) as shown:
        names = shown.locator("#metric option").all_inner_texts()
        assert [name for name in names if "ncu" in name] == ["sectors, ncu", "samples, ncu"]
        line_in(shown, "source", "total += x[row, column]").hover()
        lit_count(shown, "ptx", 1)
        said = shown.locator("#detail").inner_text()
        assert "16,384 sectors" in said and "16,390 sectors, ncu" in said
        assert "ncu saw it wait for barrier 100 %" in said
        shown.keyboard.press("r")
        assert "What warps waited for, sampled by ncu" in shown.locator("#report").inner_text()


@pytest.mark.parametrize("width", [360, 800])
def test_narrow_windows(started, row_sum_page, width):
    with opened(started, row_sum_page) as shown:
        shown.set_viewport_size({"width": width, "height": 640})
        shown.reload()
        shown.wait_for_selector("html[data-ready]")
        assert shown.locator(".pane:visible").count() == max(1, width // 330)
        for key in "pfrls":
            shown.keyboard.press(key)
            assert shown.evaluate("document.documentElement.scrollWidth") <= width, key
        shown.keyboard.press("r")
        heights = shown.locator(".card").evaluate_all(
            "found => found.map(item => item.scrollHeight - item.clientHeight)"
        )
        assert max(heights) <= 1


def test_a_kernel_without_machine_code(started, row_sum_data, tmp_path):
    made = json.loads(json.dumps(row_sum_data))
    kernel = made["kernels"][0]
    kernel["stages"] = [stage for stage in kernel["stages"] if stage["name"] != "sass"]
    kernel["code"], kernel["counts"]["sass"] = {"blocks": [], "registers": {}}, {}
    (tmp_path / "none.html").write_text(page(made), encoding="utf-8")
    with opened(started, (tmp_path / "none.html").as_uri()) as shown:
        line_in(shown, "source", "total += x[row, column]").hover()
        lit_count(shown, "ptx", 1)
        shown.keyboard.press("f")
        shown.keyboard.press("ArrowDown")
        assert "There is no machine code" in shown.locator("#flow").inner_text()


def test_very_long_lines(started, row_sum_data, tmp_path):
    made = json.loads(json.dumps(row_sum_data))
    file = next(item for item in made["files"] if item["name"] == "demo_kernels.py")
    lines = file["text"].splitlines()
    lines[LOAD - 1] += "  # " + "long " * 40_000
    file["text"] = "\n".join(lines)
    for stage in made["kernels"][0]["stages"]:
        if stage["name"] == "ptx":
            texts = stage["text"].splitlines()
            texts[12] += " // " + "x" * 200_000
            stage["text"] = "\n".join(texts) + "\n"
    (tmp_path / "wide.html").write_text(page(made), encoding="utf-8")
    with opened(started, (tmp_path / "wide.html").as_uri()) as shown:
        line_in(shown, "source", "total += x[row, column]").hover(position={"x": 60, "y": 5})
        lit_count(shown, "sass", 1)
        assert shown.locator("#detail").bounding_box()["height"] < 120
        for stage in ("source", "ptx"):
            assert shown.evaluate(MEASURE, stage) < LIMIT_MS, stage


def test_layouts_have_a_view(shown):
    shown.keyboard.press("l")
    titles = shown.locator("#layout-list li").all_inner_texts()
    assert titles == [
        "f32 in gmem: (128,1024):(1024,1)", "f32 in gmem: (128):(1)", "f32 in smem: (32):(1)",
    ]  # fmt: skip
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("ArrowDown")
    assert shown.locator("#layout-picture h2").inner_text() == titles[2]


def test_search(shown):
    line_in(shown, "ptx", "ld.global").click()
    shown.keyboard.press("/")
    shown.keyboard.type("bar.sync")
    shown.keyboard.press("Enter")
    assert shown.locator('.pane[data-stage="ptx"] .cm-searchMatch-selected').inner_text() == "bar.sync"


def test_light_and_dark(started, row_sum_page):
    shades = {}
    for scheme in ("light", "dark"):
        with opened(started, row_sum_page, scheme) as shown:
            shades[scheme] = shown.evaluate("getComputedStyle(document.body).backgroundColor")
            shown.keyboard.press("t")
            assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != shades[scheme]
    assert shades == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 31)"}


def test_words_can_be_read_in_both_themes(started, row_sum_page):
    for scheme in ("light", "dark"):
        with opened(started, row_sum_page, scheme) as shown:
            paper, *inks = shown.evaluate(
                "['paper', 'ink', 'soft', 'accent', 'keyword', 'type', 'number', 'string', 'comment', 'op', 'bad'].map("
                "(name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim())"
            )
            assert all(contrast(paper, ink) >= 4.5 for ink in inks), scheme


def contrast(one, other):
    """The contrast of two colours `#rrggbb` (WCAG 2.1, "contrast ratio")."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_several_kernels(started, tmp_path):
    (tmp_path / "two.html").write_text(page(collected(run_executor(*cases.two_kernels()))), encoding="utf-8")
    with opened(started, (tmp_path / "two.html").as_uri()) as shown:
        assert "first_kernel" in shown.locator('.pane[data-stage="ptx"] .cm-content').inner_text()
        shown.keyboard.press("k")
        assert "second_kernel" in shown.locator('.pane[data-stage="ptx"] .cm-content').inner_text()
        line_in(shown, "source", "x[i] = x[i] * 2.0").hover()
        lit_count(shown, "sass", 1)


def test_a_finding_is_marked(started, tmp_path):
    (tmp_path / "racy.html").write_text(page(collected(run_executor(*cases.racing()))), encoding="utf-8")
    with opened(started, (tmp_path / "racy.html").as_uri()) as shown:
        assert "x[0] = x[1]" in texts(shown, "source", "finding")[0]
        line_in(shown, "source", "x[0] = x[1]").hover()
        lit_count(shown, "ptx", 1)
        assert "race" in shown.locator("#detail .bad").first.inner_text().lower()


MEASURE = """
async (stage) => {
  const pane = document.querySelector(`.pane[data-stage="${stage}"]`);
  const lines = [...pane.querySelectorAll('.cm-line')];
  const times = [];
  for (let step = 0; step < 30; step++) {
    const line = lines[(step * 7) % lines.length];
    const box = line.getBoundingClientRect();
    const start = performance.now();
    const place = { bubbles: true, clientX: box.left + 30, clientY: box.top + 5 };
    line.dispatchEvent(new MouseEvent('mousemove', place));
    await new Promise((resolve) => requestAnimationFrame(() => {
      const channel = new MessageChannel();  // answers once the frame is painted
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(0);
    }));
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
}
"""


def long_page(data):
    """The same page with texts repeated to `LINES` lines, each line of PTX and SASS with heat."""
    made = json.loads(json.dumps(data))
    heat = {str(line): {"sectors": line} for line in range(1, LINES + 1)}
    made["kernels"][0]["counts"] |= {"ptx": heat, "sass": heat}
    for stage in made["kernels"][0]["stages"]:
        lines = stage["text"].splitlines()
        times = LINES // len(lines) + 1
        stage["text"] = "\n".join(lines * times) + "\n"
        stage["places"] *= times
        stage["ptx"] *= times
    return page(made)


def test_a_hover_takes_less_than_50_ms_at_5000_lines(started, row_sum_data, tmp_path):
    (tmp_path / "long.html").write_text(long_page(row_sum_data), encoding="utf-8")
    with opened(started, (tmp_path / "long.html").as_uri()) as shown:
        for key in "347":
            shown.keyboard.press(key)
        counts = shown.locator(".pane .head span").all_inner_texts()
        assert sum(int(text.split()[0].replace(",", "")) >= LINES for text in counts) == 6
        for stage in ("source", "sass", "ptx"):
            # The median of 30 hovers, the best of three: other processes may take the processor in between.
            assert min(shown.evaluate(MEASURE, stage) for _ in range(3)) < LIMIT_MS, stage


def test_scrolling_5000_lines_does_not_lag(started, row_sum_data, tmp_path):
    (tmp_path / "long.html").write_text(long_page(row_sum_data), encoding="utf-8")
    with opened(started, (tmp_path / "long.html").as_uri()) as shown:
        elements = shown.evaluate("document.querySelectorAll('.cm-line').length")
        assert elements < 1000  # only the lines in sight are there
        worst = shown.evaluate(
            """async () => {
              const area = document.querySelector('.pane[data-stage="sass"] .cm-scroller');
              const times = [];
              for (let step = 0; step < 30; step++) {
                const start = performance.now();
                area.scrollTop += 2000;
                await new Promise(requestAnimationFrame);
                await new Promise(requestAnimationFrame);
                times.push(performance.now() - start);
              }
              return times.sort((a, b) => a - b)[15];
            }"""
        )
        assert worst < 2 * LIMIT_MS
