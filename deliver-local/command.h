/* deliver-local/command.h - run a program with a message on its standard
 * input, and end all of its process group.
 *
 * Called in the child of a delivery, which is already the user and waits here:
 * it feeds the program, keeps the first words that it says, holds it to its
 * time, and when it ends ends what it left behind (P17). SIGTERM to the
 * calling process, also from the kernel when its parent dies, ends the program
 * early; so SIGTERM and SIGCHLD are to be blocked when this is called.
 */
#ifndef DELIVER_LOCAL_COMMAND_H
#define DELIVER_LOCAL_COMMAND_H

#include "deliver-local/message.h"
#include "deliver-local/verdict.h"

#define COMMAND_OUTPUT_MAX 4096
/* From SIGTERM to SIGKILL. */
#define COMMAND_GRACE      (3 * USEC_PER_SEC)

struct command {
	const char *name; /* for the verdict */
	char *const *argv;
	char *const *envp;
	const char *home; /* working directory; `/` if it is not there */
	usec_t limit;
};

void command_run(
    const struct command *c, struct message *m, struct verdict *ret_verdict);

#endif
