/* fuzz.h - what every fuzz target shares (tests/README.md, "Fuzzing").
 *
 * A target is a file with LLVMFuzzerTestOneInput() and, beside "does not
 * crash", invariants in MUST(): round trips, slow models, bounds, "a refusal
 * leaves its outputs untouched". Input is cut up by struct fuzz_in.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(cond) ((cond) ? (void)0 : fuzz_fail(#cond, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *cond, const char *file, int line);

/* ---- input ---- */

struct fuzz_in {
	const uint8_t *next;
	size_t left;
};

/* A little-endian number of so many bytes; what is missing counts as 0. */
uint64_t fuzz_number(struct fuzz_in *in, size_t bytes);
/* Up to the next NUL, or all that is left: a string in memory of exactly its
 * size, so that a read beyond it is seen. The caller frees it. */
char *fuzz_string(struct fuzz_in *in);
/* All that is left, in memory of exactly its size (at least 1). */
char *fuzz_rest(struct fuzz_in *in, size_t *ret_len);
/* Strings as the arguments of a program, argv[0] is "program". */
#define FUZZ_ARGS_MAX 24
struct fuzz_args {
	int argc;
	char *argv[FUZZ_ARGS_MAX + 1];
};
void fuzz_args(struct fuzz_in *in, struct fuzz_args *ret_args);
void fuzz_args_done(struct fuzz_args *args);

/* ---- files: all below one scratch directory of this process ---- */

/* The scratch directory ($TMPDIR/fuzz-PID), which goes with the process, as
 * a descriptor and by name. */
int fuzz_dir(void);
const char *fuzz_dir_path(void);
/* The same with a subdirectory "0" in it, as split directories have. */
int fuzz_subdir(void);
/* The file of this name there, with this content and nothing else. The
 * descriptor stays the harness' own. */
int fuzz_file(const char *name, const void *data, size_t len);
/* Its path. Valid until the next call. */
const char *fuzz_path(const char *name);

/* ---- judgements ---- */

/* Only printable, valid UTF-8, and no C1 controls: written apart from
 * base/text.c on purpose. */
bool fuzz_is_shown(const char *s, size_t len);
/* All bytes of the object are still `byte`. */
bool fuzz_is_filled(const void *object, size_t size, unsigned char byte);
#define FUZZ_FILL(object)      memset(&(object), 0xa5, sizeof(object))
#define FUZZ_UNTOUCHED(object) fuzz_is_filled(&(object), sizeof(object), 0xa5)

#endif
