"""Mail in the clear to servers of other people, and what each of them does
differently, without our doing."""
import unittest

import dovecot
import exim
import opensmtpd
import postfix
from cases import BOXES, Notifies, Plain, fields


class Postfix(Notifies, unittest.TestCase):
    """Blanks before the colon of a field are taken away there."""
    name = "postfix"
    refused, later = [f"no{n}" for n in range(5)], [f"slow{n}" for n in range(5)]
    connected = r"smtpd\[\d+\]: connect from"
    bdat = r"disconnect from .* bdat=(\d+) "
    changed = ("old-style.eml",)
    trace = fields(rb"Return-Path: ADDRESS\nX-Original-To: [^\n]*\nDelivered-To: [^\n]*\n",
                   rb"Received: from test.example \(localhost \[127.0.0.1\]\)\n\tby peer.test \(Postfix\) with (?:UTF8|E)?SMTPS?"
                   rb" id \w+(?:\n?\t? ?for ADDRESS)?;(?:\n\t| )STAMP\n")

    @staticmethod
    def make():
        return postfix.Receiver(BOXES)


class Exim(Notifies, unittest.TestCase):
    name = "exim"
    refused, later = Postfix.refused, Postfix.later
    connected = r"SMTP connection from \[127.0.0.1\] \(TCP/IP connection count"
    bdat = r"<= .* K ()"
    changed = ()
    reported = ("Original-Envelope-Id: order\\+2B7", "Original-Recipient: rfc822; ?first\\+3D@test.example",
                "Action: delivered", r"Status: 2\.\d\.\d.*")  # xtext, as the sender wrote it
    trace = fields(rb"Received: from \[127.0.0.1\] \(helo=test.example\)\n\tby peer.test with (?:utf8)?e?smtps? \(Exim [\d.]+\)\n"
                   rb"\t\(envelope-from ADDRESS\)\n\tid [-\w]+(?:\n\tfor [^\s;]+)?;\n\tSTAMP\n")

    def as_kept(self, text):
        """The empty line behind the header is never missing."""
        return text if b"\n\n" in text else text + b"\n"

    @staticmethod
    def make():
        return exim.Receiver(BOXES)


class OpenSmtpd(Notifies, unittest.TestCase):
    name = "opensmtpd"
    refused, later = Postfix.refused, Postfix.later
    connected = r"smtp connected address=127.0.0.1"
    # A line ends at a NUL for it; and it completes mail without a usable Date.
    changed = ("nul.eml", "old-style.eml")
    # Neither ENVID nor ORCPT is in its reports.
    reported = ("Final-Recipient: rfc822; u0@opensmtpd.test", "Action: delivered", r"Status: 2\.\d\.\d.*")
    trace = fields(rb"(?:Return-Path: ADDRESS\n|Delivered-To: [^\n]*\n)*",
                   rb"Received: from test.example \(localhost \[127.0.0.1\]\)\n\tby peer.test \(OpenSMTPD\) with ESMTPS? id \w+"
                   rb"(?:\n\tfor ADDRESS)?;\n\tSTAMP\n")

    @staticmethod
    def make():
        return opensmtpd.Receiver()


class Dovecot(Plain, unittest.TestCase):
    """LMTP: the answers come for each recipient, some of them after the message."""
    name = "dovecot"
    kind = "lmtp"
    refused, later = ["no0", "no1", "full"], ["broken"]
    connected = r"Info: Connect from"
    changed = ()
    trace = fields(rb"Return-Path: ADDRESS\n(?:Delivered-To: [^\n]*\n)?",
                   rb"Received: from test.example(?: \(\[127.0.0.1\]\))?\n\tby peer.test with LMTPS?\n\tid \S+\n"
                   rb"\t\(envelope-from ADDRESS\)(?:\n\tfor ADDRESS)?; STAMP\n")

    @staticmethod
    def make():
        return dovecot.Receiver(BOXES)


class DovecotUnix(Dovecot):
    """The same over a socket of the file system."""
    connected = r"Info: Connect from local"

    def destination(self):
        return f"unix:{self.peer.socket}"
