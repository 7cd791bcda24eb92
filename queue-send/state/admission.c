#include "queue-send/state/pure.h"

#include "ipc/msg.h"

int
admission_choose(struct admission *in, const uint32_t waiting[ADMISSION_NSIDES])
{
	enum admission_side side = in->turn;

	if (waiting[side] == 0)
		side = (enum admission_side)(ADMISSION_NSIDES - 1 - side);
	if (waiting[side] == 0)
		return -1;
	in->turn = (enum admission_side)(ADMISSION_NSIDES - 1 - side);
	return (int)side;
}

uint32_t
admission_window(uint32_t active_limit)
{
	if (active_limit < 1)
		return 1;
	return active_limit < MSG_PREP_WINDOW ? active_limit : MSG_PREP_WINDOW;
}

uint32_t
admission_grant(uint32_t window, uint32_t granted, uint32_t waiting)
{
	uint32_t taken = granted + waiting;

	if (taken >= window)
		return 0;
	if (taken > 0 && window - taken < window / 4)
		return 0;
	return window - taken;
}
