/* qctl/read/frame.h - a frame on the pipe between a worker and its parent,
 * which are one program. */
#ifndef QCTL_READ_FRAME_H
#define QCTL_READ_FRAME_H

#include "qctl/read/worker.h"

struct frame_head {
	uint32_t type; /* enum worker_frame */
	uint32_t len;
	uint64_t messages, bytes; /* whole since the last frame */
};

/* The whole of a worker, from its start to its exit code. */
int worker_main(const struct worker_job *job, int fd, uint32_t queue);

#endif
