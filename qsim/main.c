/* qsim - try a policy of the scheduler before living with it (qsim(1)). */
#include "qsim/qsim.h"

int
main(int argc, char **argv)
{
	return qsim_main(argc, argv);
}
