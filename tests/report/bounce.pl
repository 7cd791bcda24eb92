# The recipients of each report as Mail::DeliveryStatus::BounceParser reads
# them: FILE <TAB> address <TAB> status <TAB> action.
use strict;
use warnings;
use Mail::DeliveryStatus::BounceParser;

for my $file (@ARGV) {
	open(my $in, '<:raw', $file) or die "$file: $!";
	my $parsed = Mail::DeliveryStatus::BounceParser->new(
		do { local $/; <$in> });
	for my $report ($parsed->reports) {
		my @fields = map { defined $_ ? $_ : '' } (
			$report->get('email'), $report->get('status'),
			$report->get('action'));
		s/[\t\r\n]+/ /g, s/^\s+|\s+$//g for @fields;
		print join("\t", $file, @fields), "\n";
	}
}
