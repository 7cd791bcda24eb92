#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "qsim/qsim.h"

#define COMPLAINT_MAX 1000

int
qsim_complain(int code, const char *text)
{
	struct buf clean = { 0 };

	/* Names of files may have anything in them. */
	(void)text_clean(&clean, text, strlen(text), COMPLAINT_MAX);
	fprintf(stderr, "qsim: %s\n", buf_str(&clean));
	buf_done(&clean);
	return code;
}

int
qsim_ended(int error)
{
	if (fflush(stdout) != 0 || ferror(stdout) != 0)
		return qsim_complain(
		    EXIT_TEMPORARY, "standard output cannot be written");
	if (error < 0)
		return qsim_complain(EXIT_TEMPORARY, strerror(-error));
	return 0;
}

int
qsim_print(const struct buf *text)
{
	size_t n = fwrite(text->data, 1, text->len, stdout);

	return n == text->len ? 0 : -EIO;
}

int
qsim_read(const char *path, struct scenario *ret_scenario)
{
	struct buf error = { 0 };
	int code = 0, r = scenario_read(path, ret_scenario, &error);

	if (r < 0)
		code = qsim_complain(
		    r == -ENOMEM || r == -EIO ? EXIT_TEMPORARY : EXIT_PERMANENT,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return code;
}

const char *
qsim_time(usec_t time, char text[QSIM_TIME_MAX])
{
	size_t len;

	snprintf(text, QSIM_TIME_MAX, "%" PRId64 ".%06" PRId64,
	    time / USEC_PER_SEC, time % USEC_PER_SEC);
	for (len = strlen(text); text[len - 1] == '0'; len--)
		;
	text[text[len - 1] == '.' ? len - 1 : len] = '\0';
	return text;
}
