#include "deliver-smtp/smtp.h"

int
main(int argc, char **argv)
{
	static struct smtp smtp;

	return daemon_main(argc, argv, &smtp_ops, &smtp);
}
