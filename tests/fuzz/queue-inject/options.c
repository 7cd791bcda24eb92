/* The command lines of the faces: whatever is given ends in a task or in a
 * refusal that is fit to be shown. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "queue-inject/options.h"

static int (*const faces[])(int argc, char **argv, struct options *ret_options,
    struct refusal *why) = { options_own, options_sendmail };

static bool
is_inside(const struct fuzz_args *args, const char *s)
{
	int i;

	for (i = 0; i < args->argc; i++)
		if (s >= args->argv[i] &&
		    s <= args->argv[i] + strlen(args->argv[i]))
			return true;
	return s == NULL;
}

/* What is shown of a refusal: one clean line. */
static void
check_words(const struct refusal *why)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	MUST(f != NULL);
	refusal_print(why, "program", f);
	MUST(fclose(f) == 0 && size > 0 && size < 1000);
	MUST(text[size - 1] == '\n' && fuzz_is_shown(text, size - 1));
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	uint8_t which = (uint8_t)fuzz_number(&in, 1) % ARRAY_LEN(faces);
	struct options o = { 0 };
	struct refusal why = { 0 };
	struct fuzz_args args, given;
	size_t i;
	int r;

	fuzz_args(&in, &args);
	given = args;
	r = faces[which](args.argc, args.argv, &o, &why);
	if (r == 0)
		r = options_check_rcpts(&o, &why);
	MUST(r == 0 || r == -1);
	MUST((r < 0) == (why.kind != REFUSAL_NONE));
	check_words(&why);
	if (r == 0) {
		MUST(o.task <= TASK_VERSION && o.nrcpts < FUZZ_ARGS_MAX);
		MUST(is_inside(&given, o.sender));
		MUST(is_inside(&given, o.full_name));
		MUST(is_inside(&given, o.conf_path));
		for (i = 0; i < o.nrcpts; i++)
			MUST(is_inside(&given, o.rcpts[i]));
	}
	fuzz_args_done(&given);
	return 0;
}
