#include "submit/use.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

uint32_t
use_slots(const struct conf *conf)
{
	return conf->user_process_limit == 0 ? USE_SLOTS_MAX
					     : conf->user_process_limit;
}

int
use_lock(int fd, int command, off_t at, short type)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1
	};

	if (fcntl(fd, command, &l) < 0)
		return -errno;
	return l.l_type == F_UNLCK ? 0 : 1;
}

void
use_of_slots(int fd, uint32_t slots, uint32_t except, struct use *ret)
{
	uint64_t value;
	uint32_t i;

	*ret = (struct use){ 0 };
	for (i = 0; i < slots; i++) {
		if (i == except ||
		    pread(fd, &value, sizeof(value), USE_AT_SLOT(i)) !=
			sizeof(value) ||
		    value == 0 ||
		    use_lock(fd, F_OFD_GETLK, USE_LOCK_SLOT(i), F_WRLCK) != 1)
			continue;
		ret->messages++;
		ret->inodes++;
		ret->bytes += value - 1;
	}
}

usec_t
use_rate_mark(int fd, usec_t now_wall)
{
	int64_t mark;

	if (pread(fd, &mark, sizeof(mark), USE_AT_RATE) != sizeof(mark) ||
	    mark < now_wall)
		return now_wall;
	return mark > now_wall + USE_RATE_WINDOW ? now_wall + USE_RATE_WINDOW
						 : mark;
}
