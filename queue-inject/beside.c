/* Tasks of qctl, which lies beside this program: listing, and retries. */
#include "queue-inject/inject.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTER    "qctl"
#define WORDS_MAX (3 + OPTIONS_RETRY_MAX)

/* execv() changes no word. */
static char *
word(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* Started as this program was but for the signals that were blocked. The first
 * word says how qctl reads the others. */
int
beside_start(const struct options *o, struct refusal *why)
{
	const bool retry = o->task == TASK_RETRY;
	const struct conf anywhere = { .program_dir = word("") };
	char path[PATH_MAX], *words[WORDS_MAX + 1] = { NULL };
	sigset_t none;
	size_t n = 0, i;
	int r = conf_find_program(&anywhere, LISTER, path);

	words[n++] = word(retry ? "sendmail" : LISTER);
	if (!retry)
		words[n++] = word("list");
	if (o->conf_path != NULL) {
		words[n++] = word("-c");
		words[n++] = word(o->conf_path);
	}
	for (i = 0; r == 0 && retry && i < o->nretry; i++)
		if (asprintf(&words[n++], "-q%s", o->retry[i]) < 0)
			r = -ENOMEM;
	sigemptyset(&none);
	if (r == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execv(path, words);
	if (r == 0)
		r = -errno;
	while (i-- > 0)
		free(words[--n]);
	return refuse(why, REFUSAL_UNSUPPORTED,
	    LISTER ", which %s messages, cannot be started: %s",
	    retry ? "retries" : "lists", strerror(-r));
}
