/// Pages that lead on to another address.
public enum WebPageLink {
  /// HTML that opens an address, which needs no escapes.
  public static func page(to address: String) -> String {
    """
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <meta name="referrer" content="no-referrer">
    <meta http-equiv="refresh" content="0;url=\(address)">
    <title>bundlefs</title>
    <a href="\(address)">Open the page</a>
    </html>

    """
  }
}
