import { readFileSync } from 'node:fs'

interface LockFile {
  packages: Record<string, { version: string; integrity?: string; link?: boolean }>
}

describe('package-lock.json', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as LockFile
  const installed = Object.entries(packages).filter(([path, { link }]) => path !== '' && link !== true)

  it('has a digest for each package, so that npm installs no other content', () => {
    const without = installed.filter(([, { integrity = '' }]) => !/^sha512-[\w+/]{86}==$/.test(integrity))
    expect(without.map(([path]) => path)).toEqual([])
  })
})
