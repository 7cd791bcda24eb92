#include "route/programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/line.h"
#include "base/line_file.h"

struct programs {
	struct program *list;
	size_t count;
};

/* The words of one line while it is parsed. */
struct words {
	char *word[PROGRAMS_ARGS_MAX + 2]; /* NAME and USER too */
	size_t count;
};

static const char *const value_names[PROGRAM_NVALUES] = {
	[PROGRAM_SENDER] = "sender",
	[PROGRAM_RECIPIENT] = "recipient",
	[PROGRAM_USER] = "user",
	[PROGRAM_DOMAIN] = "domain",
	[PROGRAM_NEXTHOP] = "nexthop",
};

/* ---- substitution ---- */

/* At "${": the value it names and where it ends; NULL: no known value. */
static const char *
find_value(const char *at, enum program_value *ret_value)
{
	const char *name = at + 2, *end = strchr(name, '}');
	size_t i;

	for (i = 0; end != NULL && i < PROGRAM_NVALUES; i++)
		if (strlen(value_names[i]) == (size_t)(end - name) &&
		    strncmp(value_names[i], name, (size_t)(end - name)) == 0) {
			*ret_value = (enum program_value)i;
			return end + 1;
		}
	return NULL;
}

static bool
is_template(const char *word)
{
	return strstr(word, "${") != NULL;
}

static bool
templates_are_known(const char *word)
{
	enum program_value value;

	while (word != NULL && (word = strstr(word, "${")) != NULL) {
		word = find_value(word, &value);
		if (word == NULL)
			return false;
	}
	return true;
}

static int
expand(const char *template, const char *const values[PROGRAM_NVALUES],
    struct buf *out)
{
	enum program_value value = PROGRAM_NVALUES;
	const char *at, *next;
	int r = buf_reserve(out, 0); /* "" too is an argument */

	while (r == 0 && (at = strstr(template, "${")) != NULL) {
		r = buf_add(out, template, (size_t)(at - template));
		next = find_value(at, &value);
		ASSERT(next != NULL); /* checked when it was loaded */
		template = next;
		if (r == 0)
			r = buf_add_str(out, values[value]);
	}
	return r < 0 ? r : buf_add_str(out, template);
}

int
program_argv(const struct program *program,
    const char *const values[PROGRAM_NVALUES], char ***ret_argv)
{
	char **argv = calloc(program->nargs + 1, sizeof(*argv));
	bool options_ended = false;
	size_t i;
	int r = argv == NULL ? -ENOMEM : 0;

	for (i = 0; r == 0 && i < program->nargs; i++) {
		const char *template = program->args[i];
		struct buf arg = { 0 };

		r = expand(template, values, &arg);
		argv[i] = arg.data;
		if (r == 0 && !options_ended && arg.data[0] == '-' &&
		    strncmp(template, "${", 2) == 0)
			r = -EPERM;
		options_ended |= strcmp(template, "--") == 0;
	}
	if (r < 0)
		program_argv_free(&argv);
	else
		*ret_argv = argv;
	return r;
}

void
program_argv_free(char ***argv)
{
	size_t i;

	for (i = 0; *argv != NULL && (*argv)[i] != NULL; i++)
		free((*argv)[i]);
	free(*argv);
	*argv = NULL;
}

/* ---- one line ---- */

static void
words_done(struct words *w)
{
	while (w->count > 0)
		free(w->word[--w->count]);
}

static bool
name_is_right(const char *s)
{
	size_t len = strlen(s);

	return len > 0 && len <= PROGRAMS_NAME_MAX &&
	    strspn(s,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._-") == len;
}

static const char *
judge(const struct programs *programs, const struct words *w)
{
	size_t i;

	if (w->count < 3)
		return "name, user and path are needed";
	if (!name_is_right(w->word[0]))
		return "a name is letters, digits, dot, hyphen, underscore";
	if (programs_find(programs, w->word[0]) != NULL)
		return "the name is there already";
	if (!name_is_right(w->word[1]))
		return "the second word is no name of a user: a line is "
		       "NAME USER PATH [ARGUMENT...]";
	if (strcmp(w->word[1], "root") == 0 ||
	    (strcmp(w->word[1], "-") == 0 && geteuid() == 0))
		return "programs do not run as root";
	if (w->word[2][0] != '/')
		return "the path is not absolute";
	if (is_template(w->word[2]))
		return "the path cannot depend on the message";
	for (i = 3; i < w->count; i++)
		if (!templates_are_known(w->word[i]))
			return "unknown ${value}";
	return NULL;
}

/* The words become the program's. */
static int
append(struct programs *programs, struct words *w, uint32_t line)
{
	struct program *list, *p;
	char **args = calloc(w->count - 1, sizeof(*args));

	list = reallocarray(
	    programs->list, programs->count + 1, sizeof(*programs->list));
	if (list != NULL)
		programs->list = list;
	if (list == NULL || args == NULL) {
		free(args);
		return -ENOMEM;
	}
	p = &list[programs->count++];
	*p = (struct program){ .name = w->word[0],
		.user = w->word[1],
		.args = args,
		.nargs = w->count - 2,
		.line = line };
	memcpy(args, w->word + 2, p->nargs * sizeof(*args));
	w->count = 0;
	return 0;
}

static int
take_line(void *arg, char *text, uint32_t line, const char **ret_word UNUSED,
    const char **ret_why)
{
	struct programs *programs = arg;
	struct words w = { .count = 0 };
	int r = -EINVAL;

	if (*text == '#')
		return 0;
	*ret_why = line_words(text, w.word, ARRAY_LEN(w.word), &w.count);
	if (*ret_why == NULL && w.count == 0)
		return 0;
	if (*ret_why == NULL)
		*ret_why = judge(programs, &w);
	if (*ret_why == NULL) {
		*ret_why = "out of memory";
		r = append(programs, &w, line);
	}
	words_done(&w);
	return r;
}

/* ---- the file ---- */

int
programs_load(
    const char *path, struct programs **ret_programs, struct buf *ret_error)
{
	static const struct line_file how = {
		.max_bytes = PROGRAMS_FILE_MAX,
		.max_line = PROGRAMS_LINE_MAX,
		.may_be_absent = true,
		.take = take_line,
	};
	struct programs *programs = calloc(1, sizeof(*programs));
	int r;

	if (programs == NULL)
		return -ENOMEM;
	r = line_file_read(path, &how, programs, ret_error);
	if (r < 0)
		programs_free(&programs);
	else
		*ret_programs = programs;
	return r;
}

void
programs_free(struct programs **programs)
{
	struct programs *t = *programs;
	size_t i;

	*programs = NULL;
	if (t == NULL)
		return;
	for (i = 0; i < t->count; i++) {
		free(t->list[i].name);
		free(t->list[i].user);
		program_argv_free(&t->list[i].args);
	}
	free(t->list);
	free(t);
}

const struct program *
programs_find(const struct programs *programs, const char *name)
{
	size_t i;

	for (i = 0; i < programs->count; i++)
		if (strcasecmp(programs->list[i].name, name) == 0)
			return &programs->list[i];
	return NULL;
}
