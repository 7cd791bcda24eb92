/* Tasks of qctl, which lies beside this program: listing, and retries. */
#include "queue-inject/inject.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTER    "qctl"
#define WORDS_MAX (3 + OPTIONS_RETRY_MAX)

/* The path of a program that lies beside this one, whatever name this one was
 * called by. */
static int
find_beside(const char *name, char out[PATH_MAX])
{
	const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return -errno;
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (slash == NULL || slash + 1 + strlen(name) >= out + PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(slash + 1, name, strlen(name) + 1);
	return 0;
}

static int
add_word(char *words[WORDS_MAX + 1], size_t *n, const char *word)
{
	words[*n] = strdup(word);
	if (words[*n] == NULL)
		return -ENOMEM;
	words[++*n] = NULL;
	return 0;
}

static int
add_request(char *words[WORDS_MAX + 1], size_t *n, const char *value)
{
	struct buf request = { 0 };
	int r = buf_printf(&request, "-q%s", value);

	if (r == 0)
		r = add_word(words, n, buf_str(&request));
	buf_done(&request);
	return r;
}

/* The words of qctl; its first one says how it reads the others. */
static int
add_words(const struct options *o, char *words[WORDS_MAX + 1], size_t *n)
{
	const bool retry = o->task == TASK_RETRY;
	size_t i;
	int r = add_word(words, n, retry ? "sendmail" : LISTER);

	if (r == 0 && !retry)
		r = add_word(words, n, "list");
	if (r == 0 && o->conf_path != NULL)
		r = add_word(words, n, "-c");
	if (r == 0 && o->conf_path != NULL)
		r = add_word(words, n, o->conf_path);
	for (i = 0; r == 0 && retry && i < o->nretry; i++)
		r = add_request(words, n, o->retry[i]);
	return r;
}

/* Started as this program was but for the signals that were blocked. */
int
beside_start(const struct options *o, struct refusal *why)
{
	char path[PATH_MAX], *words[WORDS_MAX + 1] = { NULL };
	sigset_t none;
	size_t n = 0;
	int r = find_beside(LISTER, path);

	if (r == 0)
		r = add_words(o, words, &n);
	sigemptyset(&none);
	if (r == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		execv(path, words);
	if (r == 0)
		r = -errno;
	while (n > 0)
		free(words[--n]);
	return refuse(why, REFUSAL_UNSUPPORTED,
	    LISTER ", which %s messages, cannot be started: %s",
	    o->task == TASK_RETRY ? "retries" : "lists", strerror(-r));
}
