#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/io.h"
#include "log/log.h"

static void
unblock_signals(void)
{
	sigset_t none;

	io_ignore_write_signals();
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The parent process may have ignored or blocked signals. Handlers are not
 * inherited; a handler at this point belongs to a run-time library. */
static void
reset_signals(void)
{
	struct sigaction sa;
	int sig;

	for (sig = 1; sig <= SIGRTMAX; sig++) {
		if (sigaction(sig, NULL, &sa) < 0 || sa.sa_handler != SIG_IGN)
			continue;
		sa = (struct sigaction){ .sa_handler = SIG_DFL };
		(void)sigaction(sig, &sa, NULL);
	}
	unblock_signals();
}

static void
reset_file_size_limit(void)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_FSIZE, &limit) == 0)
		return;
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
}

void
daemon_sane_process(void)
{
	(void)io_std_fds();
	reset_signals();
	reset_file_size_limit();
	umask(077);
}

void
daemon_sane_command(void)
{
	const struct sigaction sa = { .sa_handler = SIG_DFL };

	(void)io_std_fds();
	(void)sigaction(SIGCHLD, &sa, NULL);
	unblock_signals();
	reset_file_size_limit();
	umask(077);
}

struct word {
	const char *word;
	int value;
};

static const struct word targets[] = {
	{ "stderr", LOG_TARGET_STDERR },
	{ "syslog", LOG_TARGET_SYSLOG },
	{ NULL, LOG_TARGET_STDERR },
};
static const struct word formats[] = {
	{ "text", LOG_FORMAT_TEXT },
	{ "json", LOG_FORMAT_JSON },
	{ NULL, LOG_FORMAT_TEXT },
};
static const struct word levels[] = {
	{ "debug", LOG_DEBUG_L },
	{ "info", LOG_INFO_L },
	{ "warning", LOG_WARNING_L },
	{ "error", LOG_ERROR_L },
	{ NULL, LOG_INFO_L },
};

/* The value of the word; that of the last row when it is not among them,
 * which common/config does not let through. */
static int
word_value(const struct word *words, const char *word)
{
	while (words->word != NULL &&
	    (word == NULL || strcmp(words->word, word) != 0))
		words++;
	return words->value;
}

void
daemon_open_log(const struct conf *conf, const char *program)
{
	log_open(program,
	    (enum log_target)word_value(targets, conf->log_target),
	    (enum log_format)word_value(formats, conf->log_format),
	    (enum log_level)word_value(levels, conf->log_level));
}

int
daemon_exit_code(int error)
{
	static const int passing[] = { EAGAIN, EBUSY, EDQUOT, EINTR, EIO,
		EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC, EROFS, ESTALE,
		ETIMEDOUT };
	size_t i;

	for (i = 0; i < ARRAY_LEN(passing); i++)
		if (error == -passing[i])
			return EXIT_TEMPORARY;
	return EXIT_PERMANENT;
}
