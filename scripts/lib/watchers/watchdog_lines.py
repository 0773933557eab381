"""Prints the events that the Python package watchdog reports for a directory tree."""

import sys
import time

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer


class Lines(FileSystemEventHandler):
    def on_any_event(self, event):
        print(event.event_type, getattr(event, "dest_path", "") or event.src_path, flush=True)


observer = Observer()
observer.schedule(Lines(), sys.argv[1], recursive=True)
observer.start()
while True:
    time.sleep(3600)
