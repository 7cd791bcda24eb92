/* queue-inject/inject.h - one binary, three faces by the name it was called
 * by: queue-inject, sendmail, qmail-queue. */
#ifndef QUEUE_INJECT_INJECT_H
#define QUEUE_INJECT_INJECT_H

/* The exit code: sysexits, or those of qmail-queue in its face. */
int inject_main(int argc, char **argv);

#endif
