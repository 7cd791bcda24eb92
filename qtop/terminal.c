#include "qtop/qtop.h"

#include <errno.h>
#include <ncurses.h>
#include <term.h>
#include <unistd.h>

/* tigetstr() has two answers for a capability that a terminal lacks. */
static bool
has(const char *capability)
{
	const char *value = tigetstr(capability);

	return value != NULL && value != (const char *)-1;
}

int
terminal_check(void)
{
	int why, usable;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	if (setupterm(NULL, STDOUT_FILENO, &why) == ERR)
		return -ENODEV;
	usable = has("cup") && has("clear") && tigetflag("gn") <= 0 &&
	    tigetflag("hc") <= 0;
	(void)del_curterm(cur_term);
	return usable ? 0 : -ENODEV;
}
