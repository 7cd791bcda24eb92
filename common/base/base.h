/* base/base.h - types and macros that every file uses.
 *
 * Three grades of failure, never mixed:
 *   a bug              ASSERT: abort with a core
 *   cannot go on       start-up code only: exit 111, or 100 when trying again
 *                      cannot help (common/daemon)
 *   this item failed   return -errno, the caller decides
 * After start-up nothing that comes from disk, IPC, network, configuration or
 * environment may reach the first two.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/* Microseconds. Deadlines are of CLOCK_MONOTONIC; times that are stored or
 * shown are of the wall clock, and their names end in _wall. */
typedef int64_t usec_t;

#define USEC_PER_MSEC  ((usec_t)1000)
#define USEC_PER_SEC   ((usec_t)1000000)
#define USEC_NEVER     INT64_MAX

/* Exit codes of daemons: 100 permanent, 111 temporary. */
#define EXIT_PERMANENT 100
#define EXIT_TEMPORARY 111

#define ARRAY_LEN(a)   (sizeof(a) / sizeof((a)[0]))
#define PRINTF(f, a)   __attribute__((format(printf, f, a)))
#define UNUSED         __attribute__((unused))

/* The <sys/tree.h> of libbsd, without warnings about its unused functions. */
#define TREE_GENERATE(name, type, field, cmp) \
	RB_GENERATE_INTERNAL(                 \
	    name, type, field, cmp, static __attribute__((unused)))

/* A promise between parts of one program. Never for input. */
#define ASSERT(cond) \
	((cond) ? (void)0 : base_assert_failed(#cond, __FILE__, __LINE__))

/* A function that hears of a failed ASSERT before the process ends, in an
 * unknown state. NULL: standard error alone. */
void base_on_bug(void (*tell)(const char *text));
_Noreturn void base_assert_failed(const char *cond, const char *file, int line);

#endif
