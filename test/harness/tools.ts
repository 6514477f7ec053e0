import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { hasEngine } from '#infra/clickhouse/clickhouse.js'
import { hasJars } from '#infra/kafka/jars.js'
import { hasVenv } from '#infra/python/venv.js'

interface ToolNeed {
  isThere: () => boolean
  /** Whether the global setup brings it, where a suite needs it. */
  willCome?: () => boolean
  get: string
}

const PHP_MAILERS = [
  '/usr/share/php/libphp-phpmailer/autoload.php',
  '/usr/share/php/Symfony/Component/Mailer/autoload.php',
]

/** Programs that some suites use and that a machine may lack. */
const TOOLS = {
  swaks: { isThere: () => runs('swaks', '--version'), get: 'apt-get install swaks' },
  'smtp-source': { isThere: () => runs('smtp-source', '-h'), get: 'apt-get install postfix' },
  postfix: {
    // Every Postfix is started by root.
    isThere: () => process.getuid?.() === 0 && runs('postconf', 'mail_version'),
    get: 'as root, apt-get install postfix',
  },
  curl: { isThere: () => runs('curl', '--version'), get: 'apt-get install curl' },
  strace: { isThere: () => runs('strace', '-V'), get: 'apt-get install strace' },
  'python-packages': {
    isThere: hasVenv,
    willCome: () => spawnSync('python3', ['-c', 'import ensurepip'], { timeout: 10_000 }).status === 0,
    get: 'apt-get install python3-venv; pip fetches it then',
  },
  'ruby-mail': { isThere: () => succeeds('ruby', '-e', 'require "mail"'), get: 'apt-get install ruby-mail' },
  'php-mailers': {
    isThere: () => PHP_MAILERS.every((path) => existsSync(path)) && runs('php', '--version'),
    get: 'apt-get install php-cli libphp-phpmailer php-symfony-mailer',
  },
  'java-mail': {
    isThere: () => existsSync('/usr/share/java/jakarta-mail.jar') && succeeds('javac', '-version'),
    get: 'apt-get install default-jdk-headless libjakarta-mail-java',
  },
  go: { isThere: () => runs('go', 'version'), get: 'apt-get install golang-go' },
  msmtp: { isThere: () => runs('msmtp', '--version'), get: 'apt-get install msmtp' },
  python3: { isThere: () => runs('python3', '--version'), get: 'apt-get install python3' },
  kafka: {
    isThere: () => hasJava() && hasJars(),
    willCome: () => hasJava() && runs('mvn', '--version'),
    get: 'apt-get install openjdk-17-jre-headless maven; Maven fetches it then',
  },
  'redis-server': {
    isThere: () => version('redis-server', '--version', /v=(\d+)/) >= 7,
    get: 'version 7 or newer; apt-get install redis-server',
  },
  clickhouse: {
    isThere: hasEngine,
    get: 'npm ci --include=optional, on Linux with glibc or macOS',
  },
  'redis-cli': { isThere: () => runs('redis-cli', '--version'), get: 'apt-get install redis-tools' },
} as const satisfies Record<string, ToolNeed>

export type Tool = keyof typeof TOOLS

/** Whether nothing may be skipped: set for continuous integration. */
export const MUST_RUN_ALL = process.env.MAYFLY_TEST_ALL === '1'

/** What neither is there nor can be brought. */
export function missingTools(): { tool: Tool; get: string }[] {
  const tools = Object.entries<ToolNeed>(TOOLS).map(([tool, { get }]) => ({ tool: tool as Tool, get }))
  return tools.filter(({ tool }) => !canHave(tool))
}

/** Whether the tool is there, or can be brought. */
export function canHave(tool: Tool): boolean {
  const { isThere, willCome }: ToolNeed = TOOLS[tool]
  return isThere() || willCome?.() === true
}

export function hasTool(tool: Tool): boolean {
  return TOOLS[tool].isThere()
}

/** `describe` where the tools are there or must be, else `describe.skip`. */
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

/** The number that a program says of itself; 0 if there is none. */
function version(program: string, probe: string, form: RegExp): number {
  const { stdout, stderr, error } = spawnSync(program, [probe], { encoding: 'utf8', timeout: 10_000 })
  if (error !== undefined) return 0
  return Number(form.exec(`${stdout}${stderr}`)?.[1] ?? 0)
}
