"""What kind of instruction each mnemonic of machine code is.

Source: CUDA Binary Utilities, "Instruction Set Reference", tables for Turing, Ampere, Ada, Hopper and Blackwell.
"""

from __future__ import annotations

from typing import Final, Literal

Category = Literal["memory", "arithmetic", "control", "thread", "special"]
Space = Literal["global", "shared", "local", "constant", "generic", "tensor", "texture"]

_SPACES: Final[dict[Space, str]] = {
    "global": "LDG STG ATOMG REDG LDGSTS LDGMC UTMALDG UTMASTG UTMAREDG UTMAPF UBLKCP UBLKPF UBLKRED",
    "shared": "LDS STS ATOMS LDSM STSM STAS REDAS",
    "local": "LDL STL",
    "constant": "LDC LDCU ULDC",
    "generic": "LD ST ATOM RED",
    "tensor": "LDTM STTM UTCCP",
    "texture": "TEX TLD TLD4 TMML TXD TXQ SULD SUST SUATOM SURED SUQUERY",
}

_BY_CATEGORY: Final[dict[Category, str]] = {
    "memory": "CCTL CCTLL CCTLT MEMBAR ERRBAR FENCE LDGDEPBAR UTMACCTL UTMACMDFLUSH UTMALST QSPC UFENCE UMEMSETS",
    "control": "ACQBULK BMOV BPT BRA BRX BRXU BREAK BSSY BSYNC CALL ENDCOLLECTIVE EXIT JMP JMX JMXU KILL PREEXIT RET "
    "RPCMOV RTT WARPSYNC YIELD NANOSLEEP ACQSHMINIT",
    "thread": "ARRIVES B2R BAR CGAERRBAR CREDUX CS2R CS2UR DEPBAR ELECT MATCH R2B REDUX S2R S2UR SETCTAID SETLMEMBASE "
    "GETLMEMBASE SHFL SYNCS SYNCSU UCGABAR_ARV UCGABAR_WAIT UGETNEXTWORKID USETMAXREG USETSHMSZ VOTE VOTEU WARPGROUP "
    "WARPGROUPSET UTCATOMSWS UTCBAR",
    "special": "MOV MOVM UMOV MOV32I MOV64IUR SEL USEL PRMT UPRMT PLOP3 UPLOP3 PSETP UPSETP R2P P2R R2UR UR2UP UP2UR "
    "LEPC SGXT USGXT NOP PMTRIG VHMNMX ULEPC UVIRTCOUNT",
}


def _names(table: dict[Category, str]) -> dict[str, Category]:
    return {name: category for category, names in table.items() for name in names.split()}


_CATEGORY: Final = _names(_BY_CATEGORY)
_SPACE: Final[dict[str, Space]] = {name: space for space, names in _SPACES.items() for name in names.split()}


def space_of(mnemonic: str) -> Space | None:
    """The memory that a load, store, atomic or copy touches; None for other instructions.

    A copy between two memories counts to the slower one.
    """
    return _SPACE.get(mnemonic)


def category_of(mnemonic: str) -> Category:
    """The category of a mnemonic. All that is in no table computes: those tables are by far the longest."""
    if mnemonic in _SPACE:
        return "memory"
    return _CATEGORY.get(mnemonic, "arithmetic")
