#include "deliver-local/child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/text.h"
#include "smtp/smtp.h"

void
verdict_set(struct verdict *v, enum agent_outcome outcome, const char *dsn,
    const char *fmt, ...)
{
	va_list ap;

	v->outcome = outcome;
	snprintf(v->dsn, sizeof(v->dsn), "%s", dsn);
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

/* Errors that are not here are 4.3.0, a temporary failure of this system: disks
 * are mounted, permissions repaired, and until the mail's time is over nothing
 * is lost by waiting. */
static const struct {
	int error;
	const char *dsn;
} errors[] = {
	{ ENOSPC, "4.3.1" },
	{ EDQUOT, "4.2.2" },
	{ EFBIG, "4.2.2" },
	{ EACCES, "4.2.0" },
	{ EPERM, "4.2.0" },
	{ ENOENT, "4.2.0" },
	{ ENOTDIR, "4.2.0" },
	{ EISDIR, "4.2.0" },
	{ ELOOP, "4.2.0" },
	{ EEXIST, "4.2.0" },
	{ EMLINK, "4.2.0" },
	{ ENAMETOOLONG, "4.2.0" },
};

/* A path that is writable at a login may be closed by the unit of systemd.
 * systemd ignores the blanks around "=". Behind a letter the log would write it
 * as "\x3d". */
#define READ_ONLY_HINT                                                    \
	"; if the unit closes this path: \"systemctl edit qscheduler\", " \
	"[Service] ReadWritePaths = PATH"

static void
add_read_only_hint(struct verdict *v)
{
	size_t used = strlen(v->text);

	if (strstr(v->text, strerror(EROFS)) != NULL &&
	    sizeof(v->text) - used > sizeof(READ_ONLY_HINT))
		memcpy(v->text + used, READ_ONLY_HINT, sizeof(READ_ONLY_HINT));
}

void
verdict_error(struct verdict *v, int error, const char *what)
{
	const char *dsn = "4.3.0";
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++)
		if (error == -errors[i].error)
			dsn = errors[i].dsn;
	verdict_set(v, AGENT_DEFERRED, dsn, "%s: %s", what, strerror(-error));
	add_read_only_hint(v);
}

/* Conditions of the machine (71, 74) pass, as sendmail has it. An exit code
 * that nobody defined is a fault of the program, and waits for its repair. */
static const struct {
	int code;
	const char *dsn;
	const char *text;
} exits[] = {
	{ 0, "2.0.0", "delivered" },
	{ 64, "5.3.0", "command line usage error" },
	{ 65, "5.6.0", "data format error" },
	{ 66, "5.3.0", "cannot open input" },
	{ 67, "5.1.1", "user unknown" },
	{ 68, "5.1.2", "host name unknown" },
	{ 69, "5.3.0", "service unavailable" },
	{ 70, "5.3.0", "internal software error" },
	{ 71, "4.3.0", "system resource problem" },
	{ 72, "5.3.0", "critical system file missing" },
	{ 73, "5.2.0", "cannot create output file" },
	{ 74, "4.3.0", "input/output error" },
	{ 75, "4.3.0", "temporary failure" },
	{ 76, "5.5.0", "remote error in protocol" },
	{ 77, "5.7.0", "permission denied" },
	{ 78, "5.3.5", "configuration error" },
	{ 99, "2.0.0", "delivered" },
	{ 100, "5.3.0", "permanent failure" },
	{ 111, "4.3.0", "temporary failure" },
};

static enum agent_outcome
class_outcome(const char *dsn)
{
	return dsn[0] == '2' ? AGENT_SENT
	    : dsn[0] == '4'  ? AGENT_DEFERRED
			     : AGENT_FAILED;
}

int
verdict_code(const char *text, char dsn[AGENT_DSN_MAX], const char **ret_rest)
{
	size_t n = smtp_dsn_len(text, strlen(text));

	if (n == 0)
		return -EINVAL;
	snprintf(dsn, AGENT_DSN_MAX, "%.*s", (int)n, text);
	while (text[n] == ' ' || text[n] == '\t')
		n++;
	*ret_rest = text + n;
	return 0;
}

/* Words on one line: runs of blanks and line ends become one blank, and go at
 * both ends. -ENOMEM. */
static int
one_line(struct buf *out, const char *s, size_t len)
{
	bool blank = false;
	size_t i;
	int r = 0;

	for (i = 0; i < len && out->len < VERDICT_TEXT_MAX && r == 0; i++) {
		bool is_blank = s[i] == ' ' || (s[i] >= '\t' && s[i] <= '\r');

		if (!is_blank && blank && out->len > 0)
			r = buf_add_char(out, ' ');
		if (!is_blank && r == 0)
			r = buf_add_char(out, s[i]);
		blank = is_blank;
	}
	return r;
}

/* The program's own words; a code in front of them that is of the class of
 * its exit is more exact than ours. */
static void
add_output(struct verdict *v, const char *output, size_t len)
{
	struct buf words = { 0 }, said = { 0 };
	const char *rest;
	char dsn[AGENT_DSN_MAX];
	size_t used = strlen(v->text);
	/* Less the colon, the blank and the NUL: no character is cut in two. */
	size_t room = sizeof(v->text) - used - 3;

	if (one_line(&words, output, len) == 0 && words.len > 0 &&
	    text_clean(&said, words.data, words.len, room) == 0) {
		rest = buf_str(&said);
		if (verdict_code(rest, dsn, &rest) == 0 && dsn[0] == v->dsn[0])
			memcpy(v->dsn, dsn, sizeof(dsn));
		snprintf(v->text + used, sizeof(v->text) - used, ": %s", rest);
	}
	buf_done(&words);
	buf_done(&said);
}

void
verdict_status(struct verdict *v, int status, const char *program,
    const char *output, size_t len)
{
	size_t i = 0;
	int code;

	if (!WIFEXITED(status)) {
		verdict_set(v, AGENT_DEFERRED, "4.3.0",
		    "program %s was ended by signal %d", program,
		    WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		add_output(v, output, len);
		return;
	}
	code = WEXITSTATUS(status);
	while (i < ARRAY_LEN(exits) && exits[i].code != code)
		i++;
	if (i == ARRAY_LEN(exits))
		verdict_set(v, AGENT_DEFERRED, "4.3.0",
		    "program %s ended with unknown status %d", program, code);
	else if (exits[i].dsn[0] == '2')
		verdict_set(v, AGENT_SENT, exits[i].dsn,
		    "delivered to program %s", program);
	else
		verdict_set(v, class_outcome(exits[i].dsn), exits[i].dsn,
		    "program %s: %s", program, exits[i].text);
	if (v->outcome != AGENT_SENT)
		add_output(v, output, len);
	if (v->outcome == AGENT_DEFERRED)
		add_read_only_hint(v);
}

void
verdict_refuse(struct verdict *v, const char *nexthop)
{
	char dsn[AGENT_DSN_MAX] = "5.0.0";
	const char *text = nexthop;

	if (verdict_code(nexthop, dsn, &text) < 0 || dsn[0] == '2') {
		snprintf(dsn, sizeof(dsn), "5.0.0");
		text = nexthop;
	}
	verdict_set(v, class_outcome(dsn), dsn, "%s",
	    text[0] != '\0' ? text : "mail for this address is refused");
}

size_t
verdict_progress_len(const char *data, size_t len)
{
	size_t n = 0;

	while (n < len && (unsigned char)data[n] == VERDICT_PROGRESS)
		n++;
	return n;
}

size_t
verdict_size(const struct verdict *v)
{
	return offsetof(struct verdict, text) + strlen(v->text) + 1;
}

int
verdict_write(const struct verdict *v, int fd)
{
	return io_write_all(fd, v, verdict_size(v));
}

int
verdict_read(const void *data, size_t len, struct verdict *ret_verdict)
{
	struct verdict v = { 0 };
	const char *bytes = data;

	if (len <= offsetof(struct verdict, text) || len > sizeof(v) ||
	    memchr(bytes + offsetof(struct verdict, text), '\0',
		len - offsetof(struct verdict, text)) != bytes + len - 1)
		return -EBADMSG;
	memcpy(&v, data, len);
	if (v.outcome >= AGENT_NOUTCOMES ||
	    memchr(v.dsn, '\0', sizeof(v.dsn)) == NULL)
		return -EBADMSG;
	*ret_verdict = v;
	return 0;
}
