/* queue-inject/inject.h - one binary, a face for each name it is called by:
 * queue-inject, sendmail, mailq, newaliases, qmail-queue. */
#ifndef QUEUE_INJECT_INJECT_H
#define QUEUE_INJECT_INJECT_H

/* The exit code: sysexits, or those of qmail-queue in its face. */
int inject_main(int argc, char **argv);

#endif
