import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { hasEngine } from '#infra/clickhouse/clickhouse.js'
import { hasJars } from '#infra/kafka/jars.js'
import { hasVenv } from '#infra/python/venv.js'

interface ToolNeed {
  isInstalled: () => boolean
  /** Whether the global setup can install it if a suite needs it. */
  canInstall?: () => boolean
  get: string
}

const PHP_MAILERS = [
  '/usr/share/php/libphp-phpmailer/autoload.php',
  '/usr/share/php/Symfony/Component/Mailer/autoload.php',
]

/** Programs that some suites use and that a machine may lack. */
const TOOLS = {
  swaks: { isInstalled: () => runs('swaks', '--version'), get: 'apt-get install swaks' },
  'smtp-source': { isInstalled: () => runs('smtp-source', '-h'), get: 'apt-get install postfix' },
  postfix: {
    // Postfix must be started by root.
    isInstalled: () => process.getuid?.() === 0 && runs('postconf', 'mail_version'),
    get: 'as root, apt-get install postfix',
  },
  curl: { isInstalled: () => runs('curl', '--version'), get: 'apt-get install curl' },
  chromium: {
    isInstalled: () => runs(findChromium() ?? 'chromium', '--version'),
    get: 'apt-get install chromium-headless-shell, or chromium',
  },
  strace: { isInstalled: () => runs('strace', '-V'), get: 'apt-get install strace' },
  'python-packages': {
    isInstalled: hasVenv,
    canInstall: () => spawnSync('python3', ['-c', 'import ensurepip'], { timeout: 10_000 }).status === 0,
    get: 'apt-get install python3-venv; the tests then install it with pip',
  },
  'ruby-mail': {
    isInstalled: () => succeeds('ruby', '-e', 'require "mail"'),
    get: 'apt-get install ruby-mail',
  },
  'php-mailers': {
    isInstalled: () => PHP_MAILERS.every((path) => existsSync(path)) && runs('php', '--version'),
    get: 'apt-get install php-cli libphp-phpmailer php-symfony-mailer',
  },
  'java-mail': {
    isInstalled: () => existsSync('/usr/share/java/jakarta-mail.jar') && succeeds('javac', '-version'),
    get: 'apt-get install default-jdk-headless libjakarta-mail-java',
  },
  maven: {
    isInstalled: () => version('javac', '-version', /javac (\d+)/) >= 17 && runs('mvn', '--version'),
    get: 'apt-get install openjdk-17-jdk-headless maven',
  },
  go: { isInstalled: () => runs('go', 'version'), get: 'apt-get install golang-go' },
  k6: {
    isInstalled: () => runs('k6', 'version'),
    get: 'go install go.k6.io/k6@v1.8.1, with its folder in PATH',
  },
  'tessera-fsck': {
    isInstalled: () => runs('tessera-fsck', '--help'),
    get: 'go install github.com/transparency-dev/tessera/cmd/fsck@v1.0.4, in PATH under this name',
  },
  cargo: {
    isInstalled: () => version('cargo', '--version', /cargo 1\.(\d+)/) >= 75,
    get: 'version 1.75 or newer; apt-get install cargo, or cargo-web on Debian 12',
  },
  litewitness: {
    isInstalled: () => runs('litewitness', '-h') && runs('ssh-agent', '-h'),
    get: 'apt-get install openssh-client, and go install filippo.io/torchwood/cmd/litewitness@v0.9.0, with its folder in PATH',
  },
  msmtp: { isInstalled: () => runs('msmtp', '--version'), get: 'apt-get install msmtp' },
  python3: { isInstalled: () => runs('python3', '--version'), get: 'apt-get install python3' },
  kafka: {
    isInstalled: () => hasJava() && hasJars(),
    canInstall: () => hasJava() && runs('mvn', '--version'),
    get: 'apt-get install openjdk-17-jre-headless maven; the tests then download it with Maven',
  },
  'redis-server': {
    isInstalled: () => version('redis-server', '--version', /v=(\d+)/) >= 7,
    get: 'version 7 or newer; apt-get install redis-server',
  },
  clickhouse: {
    isInstalled: hasEngine,
    get: 'npm ci --include=optional, on Linux with glibc or macOS',
  },
  'redis-cli': { isInstalled: () => runs('redis-cli', '--version'), get: 'apt-get install redis-tools' },
} as const satisfies Record<string, ToolNeed>

export type Tool = keyof typeof TOOLS

/** Whether no suite may be skipped, as in continuous integration. */
export const MUST_RUN_ALL = process.env.MAYFLY_TEST_ALL === '1'

/** Tools that are neither installed nor can be installed by the global setup. */
export function missingTools(): { tool: Tool; get: string }[] {
  const tools = Object.entries<ToolNeed>(TOOLS).map(([tool, { get }]) => ({ tool: tool as Tool, get }))
  return tools.filter(({ tool }) => !isAvailable(tool))
}

/** Whether the tool is installed, or the global setup can install it. */
export function isAvailable(tool: Tool): boolean {
  const { isInstalled, canInstall }: ToolNeed = TOOLS[tool]
  return isInstalled() || canInstall?.() === true
}

/** Debian's Chromium: the one that can only be headless, which is faster, or else the whole. Null if there is none. */
export function findChromium(): string | null {
  return findProgram('chromium-headless-shell') ?? findProgram('chromium')
}

/** The path of a program in PATH or /usr/sbin; null if it is not installed. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export function hasTool(tool: Tool): boolean {
  return TOOLS[tool].isInstalled()
}

/** `describe` if the tools are installed or no suite may be skipped, otherwise `describe.skip`. */
export function describeWith(...tools: readonly Tool[]): jest.Describe {
  return MUST_RUN_ALL || tools.every(hasTool) ? describe : describe.skip
}

function runs(program: string, probe: string): boolean {
  return spawnSync(program, [probe], { stdio: 'ignore', timeout: 10_000 }).error === undefined
}

function succeeds(program: string, ...args: string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore', timeout: 10_000 }).status === 0
}

function hasJava(): boolean {
  return version('java', '-version', /version "(\d+)/) >= 17
}

/** The major version that a program prints; 0 if it is missing. */
function version(program: string, probe: string, pattern: RegExp): number {
  const { stdout, stderr, error } = spawnSync(program, [probe], { encoding: 'utf8', timeout: 10_000 })
  if (error !== undefined) return 0
  return Number(pattern.exec(`${stdout}${stderr}`)?.[1] ?? 0)
}
