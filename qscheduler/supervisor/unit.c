/* May the unit of systemd write to queue_base? A check runs outside of its
 * sandbox; systemctl tells the unit with all drop-ins. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#define UNIT "qscheduler.service"

/* The value of "NAME=value" among the lines, to its end; "": none. */
static size_t
unit_value(const char *shown, const char *name, const char **ret_value)
{
	const size_t len = strlen(name);
	const char *line = shown, *end;

	for (; line != NULL; line = end == NULL ? NULL : end + 1) {
		end = strchr(line, '\n');
		if (strncmp(line, name, len) != 0 || line[len] != '=')
			continue;
		*ret_value = line + len + 1;
		return strcspn(*ret_value, "\n");
	}
	*ret_value = "";
	return 0;
}

static bool
unit_has(const char *shown, const char *name, const char *want)
{
	const char *value;
	const size_t len = unit_value(shown, name, &value);

	return len == strlen(want) && strncmp(value, want, len) == 0;
}

/* The length of the longest path of a list that `path` lies on, or 0. A path
 * may begin with the marks "-" and "+". */
static size_t
unit_match(const char *list, size_t len, const char *path)
{
	size_t n, best = 0;

	for (; len > 0; list += n, len -= n) {
		const char *word = list + strspn(list, "-+ ");
		const size_t skip = (size_t)(word - list);

		if (skip >= len)
			break;
		n = strcspn(word, " \n");
		if (n > 1 && word[n - 1] == '/')
			n--;
		if (strncmp(path, word, n) == 0 &&
		    (path[n] == '/' || path[n] == '\0' || n == 1) && n > best)
			best = n;
		n = skip + strcspn(word, " \n");
		n = n < len ? n : len;
	}
	return best;
}

/* The same, of paths that a setting takes away. */
static size_t
unit_closed(const char *shown, const char *path)
{
	/* clang-format off */
	static const struct { const char *name, *value, *paths; } settings[] = {
		{ "ProtectSystem", "strict", "/" },
		{ "ProtectSystem", "full", "/usr /boot /efi /etc" },
		{ "ProtectSystem", "yes", "/usr /boot /efi" },
		{ "ProtectHome", "yes", "/home /root /run/user" },
		{ "ProtectHome", "read-only", "/home /root /run/user" },
		{ "ProtectHome", "tmpfs", "/home /root /run/user" },
	};
	/* clang-format on */
	static const char *const lists[] = { "ReadOnlyPaths",
		"InaccessiblePaths" };
	size_t i, n, best = 0;
	const char *list;

	for (i = 0; i < ARRAY_LEN(settings); i++) {
		if (!unit_has(shown, settings[i].name, settings[i].value))
			continue;
		n = unit_match(
		    settings[i].paths, strlen(settings[i].paths), path);
		best = n > best ? n : best;
	}
	for (i = 0; i < ARRAY_LEN(lists); i++) {
		n = unit_value(shown, lists[i], &list);
		n = unit_match(list, n, path);
		best = n > best ? n : best;
	}
	return best;
}

/* Is the unit there, to be started, and for this configuration? */
static bool
unit_is_ours(const char *shown, const char *conf_path)
{
	const char *value;
	size_t len;

	if (!unit_has(shown, "LoadState", "loaded") ||
	    (!unit_has(shown, "UnitFileState", "enabled") &&
		!unit_has(shown, "ActiveState", "active")))
		return false;
	if (strcmp(conf_path, CONF_DEFAULT_FILE) == 0)
		return true;
	len = unit_value(shown, "ExecStart", &value);
	if (memmem(value, len, conf_path, strlen(conf_path)) != NULL)
		return true;
	len = unit_value(shown, "Environment", &value);
	return memmem(value, len, conf_path, strlen(conf_path)) != NULL;
}

int
unit_judge(const char *shown, const char *conf_path, const char *base,
    struct buf *ret_error)
{
	const char *open;
	size_t len;

	if (!unit_is_ours(shown, conf_path))
		return 0;
	len = unit_value(shown, "ReadWritePaths", &open);
	if (unit_match(open, len, base) >= unit_closed(shown, base))
		return 0;
	(void)buf_printf(ret_error,
	    "queue_base: %s: the unit " UNIT " may not write there; run "
	    "\"systemctl edit " UNIT "\" and add, below [Service]: "
	    "ReadWritePaths=%s",
	    base, base);
	return -EROFS;
}

/* ---- systemctl ---- */

static _Noreturn void
unit_become_systemctl(int out)
{
	static const char settings[] =
	    "LoadState,UnitFileState,ActiveState,Environment,ExecStart,"
	    "ProtectSystem,ProtectHome,ReadWritePaths,ReadOnlyPaths,"
	    "InaccessiblePaths";
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0)
		execlp("systemctl", "systemctl", "show", "-p", settings, UNIT,
		    (char *)NULL);
	_exit(1);
}

/* The length of the output; 0: there is no systemd. */
static size_t
unit_ask(char *shown, size_t size)
{
	int ends[2], status = 1;
	int64_t n = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	pid = fork();
	if (pid == 0)
		unit_become_systemctl(ends[1]);
	io_close(&ends[1]);
	if (pid > 0) {
		n = io_read_all(ends[0], shown, size);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
	}
	io_close(&ends[0]);
	return n > 0 && status == 0 ? (size_t)n : 0;
}

int
unit_check(const struct conf *conf, struct buf *ret_error)
{
	char shown[16384], *real;
	int r;

	/* A user's own instance has no unit of the system. */
	if (geteuid() != 0)
		return 0;
	shown[unit_ask(shown, sizeof(shown) - 1)] = '\0';
	real = realpath(conf->queue_base, NULL);
	r = unit_judge(shown, conf_path(conf),
	    real == NULL ? conf->queue_base : real, ret_error);
	free(real);
	return r;
}
