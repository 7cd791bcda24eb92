/* A terminal: a screen of characters, what a program writes to its pty, and
 * keys. It knows what curses uses for a vt220 and fails at everything else, so
 * that whatever gets through from a page is noticed (A7). */
#ifndef TESTS_QTOP_TERMINAL_H
#define TESTS_QTOP_TERMINAL_H

#include "base/base.h"

#include <sys/types.h>

#define TERMINAL_ROWS 70
#define TERMINAL_COLS 250

enum terminal_look {
	TERMINAL_PLAIN,
	TERMINAL_REVERSE,
};

struct terminal {
	int fd; /* the master's side */
	pid_t pid;
	int rows, cols;
	int y, x;
	int top, bottom;  /* scrolling region */
	const char *term; /* TERM instead of vt220; "": none */
	bool utf8;        /* Chinese is shown as `ww`, other letters as `u` */
	bool wrap;        /* the next character goes to the next line */
	char sequence[64];
	size_t sequence_len; /* being read */
	char cells[TERMINAL_ROWS][TERMINAL_COLS];
	/* As each character was drawn: insertions and scrolling do not move
	 * looks. */
	enum terminal_look looks[TERMINAL_ROWS][TERMINAL_COLS];
	enum terminal_look look; /* of the next character */
	char unknown[80];        /* the first thing that it did not know */
	char text[TERMINAL_ROWS * (TERMINAL_COLS + 1) + 1];
};

/* Run body in a child whose terminal this is; utf8 and term may be
 * set before. */
void terminal_start(
    struct terminal *t, int rows, int cols, int (*body)(void *arg), void *arg);
void terminal_resize(struct terminal *t, int rows, int cols);
void terminal_type(struct terminal *t, const char *keys);
/* Read until the screen shows that, or the time is over. */
bool terminal_shows(struct terminal *t, const char *text);
bool terminal_hides(struct terminal *t, const char *text);
/* Until the screen is that: lines without blanks at their ends. */
bool terminal_is(struct terminal *t, const char *text);
/* Puts one character of the program's output on the screen
 * (terminal_screen.c). */
void terminal_take(struct terminal *t, char c);
/* One line; lives until the next call. */
const char *terminal_line(struct terminal *t, int y);
/* Read to its end: wait status. */
int terminal_finish(struct terminal *t);

#endif
