"""A web server on loopback that answers wrongly in chosen ways: the path is /FAULT/FILE.

Prints its port, then a line for each request.
"""

import hashlib
import http.server
import os
import sys

ROOT = sys.argv[1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        fault, name = self.path.split("?")[0].strip("/").split("/")
        print(fault, self.headers.get("Range"), self.headers.get("If-Match"), flush=True)
        if fault == "redirect":
            return self.redirect(f"/good/{name}")
        if fault == "local":
            return self.redirect(f"file://{ROOT}/{name}")
        if fault == "elsewhere":
            return self.redirect(f"http://localhost:{self.server.server_port}/leaked/{name}")
        token = self.headers.get("X-Token")
        if fault == "forbidden" or fault == "token" and token != "right" or fault == "leaked" and token:
            return self.fail(403)
        if fault == "loop":
            return self.redirect(f"/loop/{name}")
        try:
            content = open(os.path.join(ROOT, name), "rb").read()
        except OSError:
            return self.fail(404)
        tag = f'"{hashlib.sha1(content).hexdigest()}"'
        self.answer(fault, content, tag)

    def redirect(self, target):
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def fail(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, fault, content, tag):
        wanted = self.headers.get("Range")
        if self.headers.get("If-None-Match") == tag:
            return self.fail(304)
        if fault != "unconditional" and self.headers.get("If-Match", tag) != tag:
            return self.fail(412)
        if not wanted or fault in ("whole", "cutwhole", "bare"):
            return self.whole(fault, content, tag)
        first, last = wanted.split("=")[1].split("-")
        if not first:
            if fault == "nosuffix":
                return self.whole(fault, content, tag)
            first, last = max(0, len(content) - int(last)), len(content) - 1
        first, last = int(first), min(int(last), len(content) - 1)
        self.part(fault, content, tag, first, last)

    def whole(self, fault, content, tag):
        self.send_response(200)
        if fault != "bare":
            self.send_header("ETag", tag)
        if fault == "whole":
            # Without a length: the end of the connection is that of the object.
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = True
            return
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "cutwhole":
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        else:
            self.wfile.write(content)

    def part(self, fault, content, tag, first, last):
        body = content[first : last + 1]
        shown = f"bytes {first}-{last}/{len(content)}"
        length = len(body)
        # The beginning of an object is always right, so that what follows is tried.
        isLater = os.path.exists(os.path.join(ROOT, "later"))
        if isLater:
            if fault == "total":
                shown = f"bytes {first}-{last}/{len(content) + 1}"
            elif fault == "shifted":
                shown = f"bytes {first + 1}-{last + 1}/{len(content) + 9}"
            elif fault == "nonsense":
                shown = "bytes 0-99999999999999999999999/18446744073709551616"
            elif fault == "negative":
                shown = f"bytes -1-{last}/{len(content)}"
            elif fault == "none":
                shown = None
            elif fault == "long":
                body, length = body + b"more" * 1000, length + 4000
            elif fault == "short":
                body, length = body[:-7], length - 7
            elif fault == "cut":
                body = body[: len(body) // 2]
            elif fault == "huge":
                length = 1 << 70
            elif fault == "headers":
                self.send_response(206)
                for number in range(10000):
                    self.send_header(f"X-{number}", "x" * 100)
                self.end_headers()
                return
        self.send_response(206)
        self.send_header("ETag", tag)
        if shown:
            self.send_header("Content-Range", shown)
        if fault == "packed" and isLater:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass
        if fault in ("cut", "huge"):
            self.close_connection = True


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
