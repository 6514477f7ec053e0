import type { RootDatabase } from 'lmdb'
import type { KeyId } from '#libs/domain/ids/typeid.js'
import { closeLmdbFile, commit, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { KeyUseStore } from '#libs/ports/key-use/key-use.js'

/*
 * Relies on lmdb 3 with commits that are visible at once and synced to disk soon after, as the views do. A crash of the
 * machine may lose the last commits, a killed process loses none.
 */

/** Uses a file of its own, because the views' file can be removed and rebuilt from the log, and this can't. */
export class LmdbKeyUseStore implements KeyUseStore {
  private constructor(private readonly root: RootDatabase<number, KeyId>) {}

  /** Throws if the file can't be opened. */
  static open(path: string): LmdbKeyUseStore {
    return new LmdbKeyUseStore(openLmdbFile<number, KeyId>({ path, syncMode: 'after-visible' }))
  }

  put(uses: ReadonlyMap<KeyId, Date>): Promise<void> {
    return commit(this.root, () => {
      for (const [keyId, at] of uses) {
        if (at.getTime() > (this.root.get(keyId) ?? -Infinity)) this.root.putSync(keyId, at.getTime())
      }
    })
  }

  get(keyIds: readonly KeyId[]): Promise<Map<KeyId, Date>> {
    const found = keyIds.flatMap((keyId) => {
      const atMs = this.root.get(keyId)
      return atMs === undefined ? [] : [[keyId, new Date(atMs)] as const]
    })
    return Promise.resolve(new Map(found))
  }

  close(): Promise<void> {
    return closeLmdbFile(this.root)
  }
}
