import CFuse

/// Selects the capabilities that the daemon uses from those that the kernel offers at INIT.
func negotiate(_ settings: ConnectionSettings, _ connection: inout fuse_conn_info) {
  func want(_ capability: CInt, _ wanted: Bool) {
    let bit = UInt32(bitPattern: capability)
    if wanted { connection.want |= connection.capable & bit } else { connection.want &= ~bit }
  }
  if let maxRead = settings.maxRead { connection.max_read = maxRead }
  want(FUSE_CAP_AUTO_INVAL_DATA, true)
  want(FUSE_CAP_ASYNC_READ, true)
  want(FUSE_CAP_PARALLEL_DIROPS, true)
  want(FUSE_CAP_READDIRPLUS, true)
  want(FUSE_CAP_READDIRPLUS_AUTO, true)
  want(FUSE_CAP_POSIX_ACL, settings.posixACLs)
  want(FUSE_CAP_DONT_MASK, settings.appliesUmask)
  want(FUSE_CAP_CACHE_SYMLINKS, settings.cachesSymbolicLinks)
  // Without OPEN requests, O_TRUNC must arrive as SETATTR.
  want(FUSE_CAP_ATOMIC_O_TRUNC, false)
  // Splices file content of large replies without a copy through user space.
  want(FUSE_CAP_SPLICE_WRITE, true)
  // The pages belong to the layer's page cache and must not be moved out of it.
  want(FUSE_CAP_SPLICE_MOVE, false)
  // Splicing costs more than copying for small requests.
  want(FUSE_CAP_SPLICE_READ, false)
  want(FUSE_CAP_WRITEBACK_CACHE, false)
}
