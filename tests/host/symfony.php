<?php
/* symfony.php: a message by Symfony's mailer, with the command that it has by
 * default: /usr/sbin/sendmail -bs. */
require '/usr/share/php/Symfony/Component/Mailer/autoload.php';
require_once '/usr/share/php/Symfony/Component/Mime/autoload.php';

use Symfony\Component\Mailer\Transport\SendmailTransport;
use Symfony\Component\Mime\Email;

$message = (new Email())
    ->from('app@host.example.test')
    ->to('x@strict.test')
    ->bcc('symfony-blind@strict.test')
    ->subject('symfony')
    ->text("symfony-text\n.\nthe last line\n");
(new SendmailTransport())->send($message);
