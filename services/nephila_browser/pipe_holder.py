"""The process that the Playwright driver starts as its browser: it passes the pipe of DevTools to Nephila, and waits.

Run as a script, with the directory of the socket. The driver writes commands to descriptor 3 and reads responses from
descriptor 4. This process ends when its connection is closed, which the driver takes for the end of the browser.
"""

import os
import socket
import sys


def hand_over(directory: str, name: str) -> None:
    """Send descriptors 3 and 4 over the socket, and wait until it is closed."""
    os.chdir(directory)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(name)
        socket.send_fds(connection, [b"."], [3, 4])
        os.close(3)
        os.close(4)
        connection.recv(1)


if __name__ == "__main__":
    hand_over(sys.argv[1], sys.argv[2])
