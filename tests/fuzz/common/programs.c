/* The programs file, and the arguments that a message makes of its templates:
 * an address stays inside its argument and never becomes an option. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "route/programs.h"

static const char *const names[PROGRAM_NVALUES] = { "${sender}", "${recipient}",
	"${user}", "${domain}", "${nexthop}" };

/* One template put together plainly. */
static void
model_expand(const char *template, const char *const values[PROGRAM_NVALUES],
    struct buf *out)
{
	buf_reset(out);
	MUST(buf_reserve(out, 0) == 0);
	while (*template != '\0') {
		size_t i;

		for (i = 0; i < PROGRAM_NVALUES; i++)
			if (strncmp(template, names[i], strlen(names[i])) == 0)
				break;
		if (i == PROGRAM_NVALUES) {
			MUST(buf_add_char(out, *template ++) == 0);
			continue;
		}
		MUST(buf_add_str(out, values[i]) == 0);
		template += strlen(names[i]);
	}
}

static void
check_argv(const struct program *p, const char *const values[PROGRAM_NVALUES])
{
	bool ended = false, option = false;
	struct buf want = { 0 };
	char **argv = NULL;
	size_t i;
	int r = program_argv(p, values, &argv);

	for (i = 0; i < p->nargs; i++) {
		model_expand(p->args[i], values, &want);
		if (argv != NULL)
			MUST(strcmp(argv[i], buf_str(&want)) == 0);
		option |= !ended && buf_str(&want)[0] == '-' &&
		    strncmp(p->args[i], "${", 2) == 0;
		ended |= strcmp(p->args[i], "--") == 0;
	}
	MUST(r == (option ? -EPERM : 0));
	MUST(r == 0 ? argv[p->nargs] == NULL : argv == NULL);
	program_argv_free(&argv);
	buf_done(&want);
}

static void
check_program(const struct program *p)
{
	size_t i;

	MUST(strlen(p->name) <= PROGRAMS_NAME_MAX && p->name[0] != '\0');
	MUST(p->nargs >= 1 && p->nargs <= PROGRAMS_ARGS_MAX);
	MUST(p->args[0][0] == '/' && strstr(p->args[0], "${") == NULL);
	MUST(p->args[p->nargs] == NULL && p->line > 0);
	MUST(strcmp(p->user, "root") != 0 && p->user[0] != '\0');
	for (i = 0; i < p->nargs; i++)
		MUST(strchr(p->args[i], '\n') == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct programs *programs = NULL;
	const char *values[PROGRAM_NVALUES];
	char *strings[PROGRAM_NVALUES + 1] = { NULL }, *text;
	struct buf error = { 0 };
	const struct program *p;
	size_t i, len;
	int r;

	for (i = 0; i < ARRAY_LEN(strings); i++)
		strings[i] = fuzz_string(&in);
	for (i = 0; i < PROGRAM_NVALUES; i++)
		values[i] = strings[i];
	text = fuzz_rest(&in, &len);
	fuzz_file("programs", text, len);
	r = programs_load(fuzz_path("programs"), &programs, &error);
	if (r < 0) {
		MUST(r == -EINVAL && programs == NULL && error.len > 0);
	} else {
		p = programs_find(programs, strings[PROGRAM_NVALUES]);
		if (p == NULL)
			p = programs_find(programs, "a");
		if (p != NULL) {
			check_program(p);
			check_argv(p, values);
		}
		programs_free(&programs);
	}
	for (i = 0; i < ARRAY_LEN(strings); i++)
		free(strings[i]);
	free(text);
	buf_done(&error);
	return 0;
}
