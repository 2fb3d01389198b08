"""What commands say to people, as plain text; nothing is asked, read or changed here."""
