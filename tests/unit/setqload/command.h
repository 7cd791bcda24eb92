/* The command in a child, and its supervisor, which is the test. */
#ifndef TESTS_SETQLOAD_COMMAND_H
#define TESTS_SETQLOAD_COMMAND_H

#include "ipc/ask.h"
#include "ipc/page.h"

extern char instance[32], name[IPC_NAME_MAX];
extern struct sched_page *page;
extern struct ask_socket requests;

/* .init and .fini of a suite. */
void command_setup(void);
void command_teardown(void);
void start_supervisor(void);
/* The next request, and its answer. */
void take_request(struct ask *ret_ask);
void answer_request(const struct ask *ask, int code, const char *text);
/* A request waits. */
bool is_asked(void);

/* What a run of the command said. */
struct run {
	int code;
	char out[2048], err[2048];
};

void read_back(int fd, char *text, size_t size);
/* Writable, as those of main() are. */
char **copy_words(int argc, const char *const *words);
void free_words(char **argv);
/* In a child, as a command is; as nobody if asked. */
pid_t start(int argc, char **argv, const int fds[2], bool nobody);

#endif
