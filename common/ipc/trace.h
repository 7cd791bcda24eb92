/* ipc/trace.h - a trace of dialogues: words that qctl, queue-send and
 * deliver-smtp share (TRACE_BEGIN, TRACE, TRACE_LINE, TRACED). */
#ifndef IPC_TRACE_H
#define IPC_TRACE_H

/* Speaker of a line. */
enum trace_who {
	TRACE_WE,     /* a command of ours */
	TRACE_SERVER, /* a reply */
	TRACE_EVENT,  /* neither: connected, lost, ... */
	TRACE_NWHO,
};

#define TRACE_LINE_MAX    512 /* octets */
#define TRACE_PATTERN_MAX 600 /* octets of a destination */
#define TRACE_SECONDS_MAX (24 * 3600)

#endif
