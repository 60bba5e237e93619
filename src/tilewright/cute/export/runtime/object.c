/* Loader of relocatable ELF64 objects.
 *
 * Sources: System V ABI, AMD64 supplement, table 4.9; ELF for the Arm 64-bit Architecture, sections 5.7.4 to 5.7.12.
 * Names of the formulas there: S symbol, A addend, P place, G slot of the symbol's address.
 */
#define _GNU_SOURCE
#include "object.h"

#include "CuteDSLRuntime.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
static const unsigned char JUMP[8] = {0xff, 0x25, 0x02, 0, 0, 0, 0x0f, 0x0b}; /* jmp *8(%rip); ud2 */
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
static const unsigned char JUMP[8] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6}; /* ldr x16, #8; br x16 */
#else
#error "x86-64 and AArch64 are known"
#endif
enum { SLOT = 16 }; /* of a symbol: code that jumps to it, then its address, which is also its GOT entry */

struct tw_object {
  unsigned char *base;
  size_t size;
  char *names;
  Elf64_Sym *symbols;
  uintptr_t *addresses; /* by symbol; 0 where it is not loaded */
  size_t count;
};

struct input {
  const unsigned char *bytes;
  size_t size;
  const Elf64_Shdr *sections;
  size_t count;
  size_t *offsets; /* from the base, by section; SIZE_MAX where it is not loaded */
  size_t slots;    /* from the base */
  size_t page;
  size_t ends[3];  /* of code, constants, data */
};

static size_t aligned(size_t value, size_t to) { return (value + to - 1) / to * to; }

static int holds(const struct input *in, uint64_t offset, uint64_t size) {
  return offset <= in->size && size <= in->size - offset;
}

/* CRC-32, ISO 3309. */
static uint32_t checksum(const unsigned char *bytes, size_t size) {
  uint32_t table[256], sum = 0xffffffff;
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
  }
  for (size_t i = 0; i < size; ++i) sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 255];
  return ~sum;
}

/* The seal at the end of an exported object, see targets/host/seal.py: mark, size, checksum, 0. */
static int is_whole(const struct input *in) {
  enum { MARK = 8, SEAL = 24 };
  if (in->size < SEAL || memcmp(in->bytes + in->size - SEAL, "TWSEAL1\n", MARK)) return 0;
  const unsigned char *end = in->bytes + in->size - SEAL + MARK;
  uint64_t size;
  uint32_t sums[2];
  memcpy(&size, end, sizeof size);
  memcpy(sums, end + sizeof size, sizeof sums);
  return size == in->size - SEAL && sums[0] == checksum(in->bytes, in->size - sizeof sums) && !sums[1];
}

static const char *check(struct input *in) {
  const Elf64_Ehdr *head = (const Elf64_Ehdr *)in->bytes;
  if (in->size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_type != ET_REL)
    return "it is no object file";
  if (!is_whole(in)) return "it is damaged: its checksum does not fit";
  if (head->e_machine != MACHINE) return "it is for another processor";
  if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff % 8 ||
      !holds(in, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)))
    return "it is damaged";
  in->sections = (const Elf64_Shdr *)(in->bytes + head->e_shoff);
  in->count = head->e_shnum;
  for (size_t i = 0; i < in->count; ++i) {
    const Elf64_Shdr *s = &in->sections[i];
    if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && !holds(in, s->sh_offset, s->sh_size)) return "it is damaged";
    if (s->sh_addralign > 4096) return "a section is aligned to more than a page";
  }
  return NULL;
}

/* 0 code, 1 constants, 2 data, -1 not loaded: unwinding tables are not used, compiled host code raises nothing. */
static int kind(const Elf64_Shdr *s) {
  if (!(s->sh_flags & SHF_ALLOC) || s->sh_type == SHT_NOTE || s->sh_type == 0x70000001 /* SHT_X86_64_UNWIND */) return -1;
  return s->sh_flags & SHF_EXECINSTR ? 0 : s->sh_flags & SHF_WRITE ? 2 : 1;
}

/* Where everything will lie; the slots of all symbols follow the code. Gives the bytes needed. */
static size_t lay_out(struct input *in, size_t symbols) {
  size_t end = 0;
  for (int which = 0; which < 3; ++which) {
    for (size_t i = 0; i < in->count; ++i) {
      const Elf64_Shdr *s = &in->sections[i];
      if (kind(s) != which) continue;
      end = aligned(end, s->sh_addralign ? s->sh_addralign : 1);
      in->offsets[i] = end;
      end += s->sh_size;
    }
    if (which == 0) {
      in->slots = end = aligned(end, SLOT);
      end += symbols * SLOT;
    }
    in->ends[which] = end = aligned(end, in->page);
  }
  return end;
}

static int resolve(struct tw_object *made, const struct input *in, void *(*outer)(void *, const char *), void *context,
                   const char **reason) {
  for (size_t i = 1; i < made->count; ++i) {
    const Elf64_Sym *s = &made->symbols[i];
    if (s->st_shndx == SHN_UNDEF) {
      made->addresses[i] = (uintptr_t)outer(context, made->names + s->st_name);
      if (!made->addresses[i]) {
        *reason = made->names + s->st_name;
        return CuteDSLRT_Error_Unresolved;
      }
    } else if (s->st_shndx == SHN_ABS) {
      made->addresses[i] = s->st_value;
    } else if (s->st_shndx < in->count && in->offsets[s->st_shndx] != SIZE_MAX) {
      made->addresses[i] = (uintptr_t)made->base + in->offsets[s->st_shndx] + s->st_value;
    }
    unsigned char *slot = made->base + in->slots + i * SLOT;
    memcpy(slot, JUMP, sizeof JUMP);
    memcpy(slot + 8, &made->addresses[i], 8);
  }
  return 0;
}

static int put32(unsigned char *at, int64_t value, int is_signed) {
  if (is_signed ? value != (int32_t)value : value != (int64_t)(uint32_t)value) return 0;
  uint32_t word = (uint32_t)value;
  memcpy(at, &word, 4);
  return 1;
}

#if defined(__x86_64__)
/* Write one relocation; 0 where its type is unknown or it does not reach. */
static int write_one(unsigned char *at, uint32_t type, uint64_t s, int64_t a, uint64_t slot) {
  const uint64_t p = (uint64_t)(uintptr_t)at;
  uint64_t value = s + (uint64_t)a;
  switch (type) {
  case R_X86_64_64: memcpy(at, &value, 8); return 1;
  case R_X86_64_PC64: value -= p; memcpy(at, &value, 8); return 1;
  case R_X86_64_PC32: return put32(at, (int64_t)(value - p), 1);
  case R_X86_64_PLT32: return put32(at, (int64_t)(value - p), 1) || put32(at, (int64_t)(slot + (uint64_t)a - p), 1);
  case R_X86_64_GOTPCREL:
  case 41: /* R_X86_64_GOTPCRELX */
  case 42: /* R_X86_64_REX_GOTPCRELX */ return put32(at, (int64_t)(slot + 8 + (uint64_t)a - p), 1);
  case R_X86_64_32: return put32(at, (int64_t)value, 0);
  case R_X86_64_32S: return put32(at, (int64_t)value, 1);
  default: return 0;
  }
}
#else
static int patch(unsigned char *at, uint32_t keep, uint32_t bits) {
  uint32_t word;
  memcpy(&word, at, 4);
  word = (word & keep) | bits;
  memcpy(at, &word, 4);
  return 1;
}

static int page21(unsigned char *at, uint64_t target, uint64_t p) {
  const int64_t pages = ((int64_t)(target & ~0xfffull) - (int64_t)(p & ~0xfffull)) >> 12;
  if (pages < -(1 << 20) || pages >= 1 << 20) return 0;
  return patch(at, 0x9f00001f, ((uint32_t)pages & 3) << 29 | ((uint32_t)(pages >> 2) & 0x7ffff) << 5);
}

static int low12(unsigned char *at, uint64_t target, int scale) {
  return patch(at, 0xffc003ff, (uint32_t)((target & 0xfff) >> scale) << 10);
}

static int branch26(unsigned char *at, uint64_t target, uint64_t p) {
  const int64_t distance = (int64_t)(target - p);
  if (distance < -(1 << 27) || distance >= 1 << 27) return 0;
  return patch(at, 0xfc000000, (uint32_t)(distance >> 2) & 0x03ffffff);
}

static int write_one(unsigned char *at, uint32_t type, uint64_t s, int64_t a, uint64_t slot) {
  const uint64_t p = (uint64_t)(uintptr_t)at, got = slot + 8 + (uint64_t)a;
  uint64_t value = s + (uint64_t)a;
  switch (type) {
  case R_AARCH64_ABS64: memcpy(at, &value, 8); return 1;
  case R_AARCH64_PREL64: value -= p; memcpy(at, &value, 8); return 1;
  case R_AARCH64_PREL32: return put32(at, (int64_t)(value - p), 1);
  case R_AARCH64_ADR_PREL_PG_HI21: return page21(at, value, p);
  case R_AARCH64_ADD_ABS_LO12_NC:
  case R_AARCH64_LDST8_ABS_LO12_NC: return low12(at, value, 0);
  case R_AARCH64_LDST16_ABS_LO12_NC: return low12(at, value, 1);
  case R_AARCH64_LDST32_ABS_LO12_NC: return low12(at, value, 2);
  case R_AARCH64_LDST64_ABS_LO12_NC: return low12(at, value, 3);
  case R_AARCH64_LDST128_ABS_LO12_NC: return low12(at, value, 4);
  case R_AARCH64_JUMP26:
  case R_AARCH64_CALL26: return branch26(at, value, p) || branch26(at, slot + (uint64_t)a, p);
  case R_AARCH64_ADR_GOT_PAGE: return page21(at, got, p);
  case R_AARCH64_LD64_GOT_LO12_NC: return low12(at, got, 3);
  default: return 0;
  }
}
#endif

static int relocate(struct tw_object *made, const struct input *in) {
  for (size_t i = 0; i < in->count; ++i) {
    const Elf64_Shdr *s = &in->sections[i];
    if (s->sh_type != SHT_RELA || s->sh_info >= in->count || in->offsets[s->sh_info] == SIZE_MAX) continue;
    const size_t room = in->sections[s->sh_info].sh_size;
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= s->sh_size; at += sizeof(Elf64_Rela)) {
      Elf64_Rela one;
      memcpy(&one, in->bytes + s->sh_offset + at, sizeof one);
      const size_t symbol = ELF64_R_SYM(one.r_info);
      if (symbol >= made->count || one.r_offset > room || room - one.r_offset < 4) return 0;
      unsigned char *place = made->base + in->offsets[s->sh_info] + one.r_offset;
      const uint64_t slot = (uint64_t)(uintptr_t)(made->base + in->slots + symbol * SLOT);
      if (!write_one(place, ELF64_R_TYPE(one.r_info), made->addresses[symbol], one.r_addend, slot)) return 0;
    }
  }
  return 1;
}

static int protect(const struct tw_object *made, const struct input *in) {
  static const int modes[3] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  size_t start = 0;
  for (int which = 0; which < 3; start = in->ends[which++])
    if (in->ends[which] > start && mprotect(made->base + start, in->ends[which] - start, modes[which])) return 0;
  __builtin___clear_cache((char *)made->base, (char *)made->base + in->ends[0]);
  return 1;
}

/* The symbol table and its names, copied. */
static const char *take_symbols(struct tw_object *made, const struct input *in) {
  const Elf64_Shdr *table = NULL;
  for (size_t i = 0; i < in->count; ++i)
    if (in->sections[i].sh_type == SHT_SYMTAB) table = &in->sections[i];
  if (!table || table->sh_link >= in->count) return "it has no symbols";
  const Elf64_Shdr *names = &in->sections[table->sh_link];
  made->count = table->sh_size / sizeof(Elf64_Sym);
  made->symbols = malloc(table->sh_size + 1);
  made->names = malloc(names->sh_size + 1);
  made->addresses = calloc(made->count + 1, sizeof *made->addresses);
  if (!made->symbols || !made->names || !made->addresses) return "out of memory";
  memcpy(made->symbols, in->bytes + table->sh_offset, table->sh_size);
  memcpy(made->names, in->bytes + names->sh_offset, names->sh_size);
  made->names[names->sh_size] = 0;
  for (size_t i = 0; i < made->count; ++i)
    if (made->symbols[i].st_name > names->sh_size) return "it is damaged";
  return NULL;
}

static int place(struct tw_object *made, struct input *in, void *(*outer)(void *, const char *), void *context,
                 const char **reason) {
  for (size_t i = 0; i < in->count; ++i) in->offsets[i] = SIZE_MAX;
  made->size = lay_out(in, made->count);
  void *base = mmap(NULL, made->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return *reason = "out of memory", CuteDSLRT_Error_OutOfMemory;
  made->base = base;
  for (size_t i = 0; i < in->count; ++i)
    if (in->offsets[i] != SIZE_MAX && in->sections[i].sh_type != SHT_NOBITS)
      memcpy(made->base + in->offsets[i], in->bytes + in->sections[i].sh_offset, in->sections[i].sh_size);
  int error = resolve(made, in, outer, context, reason);
  if (error) return error;
  if (!relocate(made, in)) return *reason = "a relocation is unknown or does not reach", CuteDSLRT_Error_InvalidObject;
  if (!protect(made, in)) return *reason = "the system forbids code of its own", CuteDSLRT_Error_InvalidObject;
  return 0;
}

int tw_object_load(struct tw_object **object, const unsigned char *bytes, size_t size,
                   void *(*outer)(void *, const char *), void *context, const char **reason) {
  static _Thread_local char unresolved[256];
  struct input in = {.bytes = bytes, .size = size, .page = (size_t)sysconf(_SC_PAGESIZE)};
  *object = NULL;
  if ((*reason = check(&in))) return CuteDSLRT_Error_InvalidObject;
  struct tw_object *made = calloc(1, sizeof *made);
  in.offsets = calloc(in.count + 1, sizeof *in.offsets);
  int error = made && in.offsets ? 0 : CuteDSLRT_Error_OutOfMemory;
  if (!error && (*reason = take_symbols(made, &in))) error = CuteDSLRT_Error_InvalidObject;
  if (!error) error = place(made, &in, outer, context, reason);
  free(in.offsets);
  if (error == CuteDSLRT_Error_Unresolved) { /* the name goes with the object */
    snprintf(unresolved, sizeof unresolved, "it needs %s", *reason);
    *reason = unresolved;
  }
  if (error)
    tw_object_free(made);
  else
    *object = made;
  return error;
}

void *tw_object_symbol(const struct tw_object *object, const char *name) {
  for (size_t i = 1; i < object->count; ++i)
    if (object->symbols[i].st_shndx != SHN_UNDEF && !strcmp(object->names + object->symbols[i].st_name, name))
      return (void *)object->addresses[i];
  return NULL;
}

void tw_object_free(struct tw_object *object) {
  if (!object) return;
  if (object->base) munmap(object->base, object->size);
  free(object->names);
  free(object->symbols);
  free(object->addresses);
  free(object);
}
