"""The forms of data instructions that the PTX ISA 9.0 has for sm_90 and below, and the emulator computes.

One line a form, written as the manual's syntax is: `{.x}` may be absent, `(a|b)` is a choice, `<name>` a set below.
An opcode that matches no line is refused, so a modifier is never ignored. Forms of sm_100 that the functions here
compute are in; those they do not compute (`cvt.rs`) are not, and `later` names their architecture.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from tilewright.base.errors import EmulationError
from tilewright.targets.emu.numerics import architectures

SETS = {
    "int": "u16|u32|u64|s16|s32|s64",
    "int8": "u8|u16|u32|u64|s8|s16|s32|s64",
    "word": "u32|s32|u64|s64",
    "i32": "u32|s32",
    "bits": "b16|b32|b64",
    "half": "f16|f16x2",
    "brain": "bf16|bf16x2",
    "float": "f16|bf16|f32|f64",
    "rnd": "rn|rz|rm|rp",
    "irnd": "rni|rzi|rmi|rpi",
    "icmp": "eq|ne|lt|le|gt|ge",
    "ucmp": "eq|ne|lt|le|gt|ge|lo|ls|hi|hs",
    "fcmp": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",
    "vcmp": "eq|ne|lt|le|gt|ge",
    "bool": "and|or|xor",
    "then": "add|min|max",
    "truth": "u32|s32|f32|f16|bf16",
    "f8": "e4m3x2|e5m2x2",
    "small": "e4m3x2|e5m2x2|e2m1x2|e2m3x2|e3m2x2",
}
ARITHMETIC = """
{.<rnd>}{.ftz}{.sat}.f32   {.<rnd>}.f64   {.<rnd>}{.ftz}.f32x2   {.rn}{.ftz}{.sat}.(<half>)   {.rn}.(<brain>)
"""
EXTREME = """
.(<int>)   .(u16x2|s16x2)   .relu.(s16x2|s32)   .f64   {.ftz}{.NaN}{.xorsign.abs}.f32   {.ftz}{.NaN}{.abs}.f32
{.ftz}{.NaN}{.xorsign.abs}.(<half>)   {.NaN}{.xorsign.abs}.(<brain>)
"""
SIGN = ".(s16|s32|s64)   {.ftz}.f32   .f64   {.ftz}.(<half>)   .(<brain>)"
ROOT = ".approx{.ftz}.f32   .(<rnd>){.ftz}.f32   .(<rnd>).f64"
SCALAR_VIDEO = ".(<i32>).(<i32>).(<i32>){.sat}{.(<then>)}"
SIMD_VIDEO = ".(<i32>).(<i32>).(<i32>){.sat}   .(<i32>).(<i32>).(<i32>).add"
FORMS: dict[str, str] = {
    "add": f"{ARITHMETIC} .(<int>)   .(u16x2|s16x2)   .sat.s32   .cc.(<word>)   {{.<rnd>}}{{.sat}}.f32.(f16|bf16)",
    "sub": f"{ARITHMETIC} .(<int>)   .sat.s32   .cc.(<word>)   {{.<rnd>}}{{.sat}}.f32.(f16|bf16)",
    "mul": f"{ARITHMETIC} .(hi|lo).(<int>)   .wide.(u16|s16|<i32>)",
    "mad": """.(hi|lo).(<int>)   .wide.(u16|s16|<i32>)   .hi.sat.s32   .(hi|lo).cc.(<word>)
              .(<rnd>){.ftz}{.sat}.f32   .(<rnd>).f64""",
    "fma": """.(<rnd>){.ftz}{.sat}.f32   .(<rnd>).f64   .(<rnd>){.ftz}.f32x2   .rn{.ftz}{.(sat|relu)}.(<half>)
              .rn{.relu}.(<brain>)   .rn.oob{.relu}.(<half>|<brain>)   .(<rnd>){.sat}.f32.(f16|bf16)""",
    "fence": """{.(sc|acq_rel|acquire|release)}.(cta|cluster|gpu|sys)   .mbarrier_init.release.cluster
                .proxy.(alias|async|async.global|async.shared::cta|async.shared::cluster)
                .proxy.tensormap::generic.(acquire|release).(cta|cluster|gpu|sys)
                .acquire.sync_restrict::shared::cluster.cluster   .release.sync_restrict::shared::cta.cluster
                .proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster
                .proxy.async::generic.release.sync_restrict::shared::cta.cluster""",
    "membar": ".(cta|gl|sys)   .proxy.(alias|async|async.global|async.shared::cta|async.shared::cluster)",
    "addc": "{.cc}.(<word>)",
    "subc": "{.cc}.(<word>)",
    "madc": ".(hi|lo){.cc}.(<word>)",
    "mul24": ".(hi|lo).(<i32>)",
    "mad24": ".(hi|lo).(<i32>)   .hi.sat.s32",
    "sad": ".(<int>)",
    "div": ".(<int>)   .(approx|full){.ftz}.f32   .(<rnd>){.ftz}.f32   .(<rnd>).f64",
    "rem": ".(<int>)",
    "abs": SIGN,
    "neg": SIGN,
    "min": EXTREME,
    "max": EXTREME,
    "dp4a": ".(<i32>).(<i32>)",
    "dp2a": ".(lo|hi).(<i32>).(<i32>)",
    "rcp": f"{ROOT}   .approx.ftz.f64",
    "sqrt": ROOT,
    "rsqrt": ".approx{.ftz}.(f32|f64)",
    "sin": ".approx{.ftz}.f32",
    "cos": ".approx{.ftz}.f32",
    "lg2": ".approx{.ftz}.f32",
    "ex2": ".approx{.ftz}.f32   .approx.(<half>)   .approx.ftz.(<brain>)",
    "tanh": ".approx.(f32|<half>|<brain>)",
    "copysign": ".(f32|f64)",
    "testp": ".(finite|infinite|number|notanumber|normal|subnormal).(f32|f64)",
    "and": ".(pred|<bits>)",
    "or": ".(pred|<bits>)",
    "xor": ".(pred|<bits>)",
    "not": ".(pred|<bits>)",
    "cnot": ".(<bits>)",
    "lop3": "{.(or|and)}.b32",
    "shl": ".(<bits>)",
    "shr": ".(<bits>|<int>)",
    "shf": ".(l|r).(clamp|wrap).b32",
    "prmt": ".b32{.(f4e|b4e|rc8|ecl|ecr|rc16)}",
    "bfe": ".(<word>)",
    "bfi": ".(b32|b64)",
    "bmsk": ".(clamp|wrap).b32",
    "szext": ".(clamp|wrap).(<i32>)",
    "brev": ".(b32|b64)",
    "popc": ".(b32|b64)",
    "clz": ".(b32|b64)",
    "bfind": "{.shiftamt}.(<word>)",
    "fns": ".b32",
    "setp": """.(<icmp>){.(<bool>)}.(s16|s32|s64)   .(<ucmp>){.(<bool>)}.(u16|u32|u64)   .(eq|ne){.(<bool>)}.(<bits>)
               .(<fcmp>){.(<bool>)}{.ftz}.(f32|<half>)   .(<fcmp>){.(<bool>)}.(f64|<brain>)""",
    "set": """.(<icmp>){.(<bool>)}.(<truth>).(s16|s32|s64)   .(<ucmp>){.(<bool>)}.(<truth>).(u16|u32|u64)
              .(eq|ne){.(<bool>)}.(<truth>).(<bits>)   .(<fcmp>){.(<bool>)}{.ftz}.(<truth>).(f32|f64)
              .(<fcmp>){.(<bool>)}{.ftz}.(f16|bf16|f16x2|bf16x2|u16|s16|u32|s32).(<half>|<brain>)""",
    "selp": ".(<bits>|<int>|f32|f64)",
    "slct": "{.ftz}.(<bits>|<int>|f32|f64).(s32|f32)",
    "cvt": """{.sat}.(<int8>).(<int8>)   .(<irnd>){.ftz}{.sat}.(<int8>).(<float>)
              .(<rnd>){.ftz}{.sat}.(<float>).(<int8>)   {.(<irnd>)}{.ftz}{.sat}.f16.f16   {.(<irnd>)}.bf16.bf16
              {.(<irnd>)}{.ftz}{.sat}.f32.f32   {.(<irnd>)}{.sat}.f64.f64
              {.(<rnd>)}{.ftz}{.sat}.f32.(f16|bf16)   {.(<rnd>)}{.ftz}{.sat}.f64.(f16|bf16|f32)
              .(<rnd>){.ftz}{.sat}.(f16|f32).f64   .(<rnd>){.ftz}.bf16.(f16|f32|f64)
              .(<rnd>){.ftz}{.sat}.f16.(bf16|f32)   .f16.bf16   .bf16.f16
              .(rn|rz)<extra>.(f16|bf16|tf32).f32   .(rn|rz)<extra>.(f16x2|bf16x2).f32   .rna{.satfinite}.tf32.f32
              .rn<finite>.(<small>).(f32|f16x2|bf16x2)   .rn{.relu}.f16x2.(<small>)
              .(rz|rp){.satfinite}.ue8m0x2.(f32|bf16x2)   .rn.bf16x2.ue8m0x2
              .pack.sat.(u16|s16).s32   .pack.sat.(u2|s2|u4|s4|u8|s8).s32.b32""",
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax"), SCALAR_VIDEO),
    **dict.fromkeys(("vshl", "vshr"), ".(<i32>).(<i32>).u32{.sat}.(clamp|wrap){.(<then>)}"),
    "vset": ".(<i32>).(<i32>).(<vcmp>){.(<then>)}",
    "vmad": ".(<i32>).(<i32>).(<i32>){.po}{.sat}{.(shr7|shr15)}",
    **dict.fromkeys((f"v{op}{n}" for op in ("add", "sub", "avrg", "absdiff", "min", "max") for n in "24"), SIMD_VIDEO),
    **dict.fromkeys(("vset2", "vset4"), ".(<i32>).(<i32>).(<vcmp>){.add}"),
}
"""Opcode words that may follow each instruction, one form a word of the text."""

# `.relu` and `.satfinite` come in either order.
EXTRA = "{.relu}{.satfinite}|{.satfinite}{.relu}"
FINITE = ".satfinite{.relu}|.relu.satfinite"


def check_form(op: str, words: tuple[str, ...]) -> None:
    """`EmulationError` unless `op` with these modifiers and types is an instruction that is computed here.

    Instructions that are not in `FORMS` pass: they are not for this table to judge.
    """
    architectures.check(op, words)
    if op in FORMS and not _matches(op, words):
        forms = " ".join(FORMS[op].split())
        raise EmulationError(
            f"instruction {'.'.join((op, *words))} is not in the PTX ISA, or not emulated",
            values={f"forms of {op}": forms},
            hint="check the modifiers, their order and the types",
        )


@lru_cache(maxsize=4096)
def _matches(op: str, words: tuple[str, ...]) -> bool:
    pattern = _pattern(op)
    if pattern.fullmatch("".join(f".{word}" for word in words)):
        return True
    if op != "cvt":
        return False
    types = tuple(word for word in words if _is_type(word))  # the assembler takes modifiers of cvt behind the types too
    modifiers = tuple(word for word in words if not _is_type(word))
    return pattern.fullmatch("".join(f".{word}" for word in modifiers + types)) is not None


def _is_type(word: str) -> bool:
    return re.fullmatch(r"([usfb]|bf|tf|e\dm|ue\dm)\d+(x\d)?", word) is not None


@cache
def _pattern(op: str) -> re.Pattern[str]:
    return re.compile("|".join(_regex(form) for form in FORMS[op].split()))


def _regex(form: str) -> str:
    """A form of the table as a regular expression."""
    form = form.replace("<extra>", f"({EXTRA})").replace("<finite>", f"({FINITE})")
    for name, choice in SETS.items():
        form = (
            form.replace(f"(<{name}>)", f"({choice})")
            .replace(f".<{name}>", f".({choice})")
            .replace(f"<{name}>", choice)
        )
    return form.replace(".", r"\.").replace("{", "(?:").replace("}", ")?").replace("(", "(?:").replace("(?:?:", "(?:")
