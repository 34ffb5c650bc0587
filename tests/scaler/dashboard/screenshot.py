#!/usr/bin/env python3
"""Takes a picture of a dashboard, of a real job or of rest_fake_server --live."""

import argparse
import time

from webdriver import Browser


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Example: screenshot.py http://127.0.0.1:20200 \"$(cat state/scaler/token)\" out.png --dark"
    )
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("out", help="a PNG file, written")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--seconds", type=float, default=8, help="how long to look first, so that rates and charts have something")
    options = parser.parse_args()
    with Browser() as browser:
        browser.look(options.dark, options.width, options.height)
        browser.open(f"{options.url}/#token={options.token}")
        browser.until("document.getElementById('connection').dataset.state === 'live'")
        time.sleep(options.seconds)
        browser.screenshot(options.out)
        for line in browser.console():
            print(line)


if __name__ == "__main__":
    main()
