#include "qctl/act/task.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

int
task_complain(const struct options *o, int code, const char *text)
{
	fprintf(stderr, "%s: %s\n", o->program, text);
	return code;
}

int
task_put(const struct options *o, int r, const struct buf *text)
{
	if (r < 0)
		return task_complain(o, EX_OSERR, strerror(-r));
	if (fputs(buf_str(text), stdout) >= 0 && fflush(stdout) == 0)
		return EX_OK;
	return task_complain(o, EX_IOERR, "standard output cannot be written");
}
