import type { KeyId } from '#libs/domain/ids/typeid.js'
import { closeLmdbFile, commit, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { KeyUseStore } from '#libs/ports/key-use/key-use.js'

/*
 * Relies on lmdb 3 with commits that are visible at once and synced to disk soon after, as the views do. A crash of the
 * machine may lose the last commits, a killed process loses none.
 */

/**
 * Uses a file of its own, because the views' file can be removed and rebuilt from the log, and this can't. Throws if the
 * file can't be opened.
 */
export function openLmdbKeyUse(path: string): KeyUseStore & { close(): Promise<void> } {
  const root = openLmdbFile<number, KeyId>({ path, syncMode: 'after-visible' })
  return {
    put: (uses) =>
      commit(root, () => {
        for (const [keyId, at] of uses) {
          if (at.getTime() > (root.get(keyId) ?? -Infinity)) root.putSync(keyId, at.getTime())
        }
      }),

    get(keyIds) {
      const found = keyIds.flatMap((keyId) => {
        const atMs = root.get(keyId)
        return atMs === undefined ? [] : [[keyId, new Date(atMs)] as const]
      })
      return Promise.resolve(new Map(found))
    },

    close: () => closeLmdbFile(root),
  }
}
