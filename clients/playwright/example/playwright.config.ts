import { defineConfig } from '@playwright/test'

const port = process.env.PORT ?? '3100'
const baseURL = `http://127.0.0.1:${port}`

export default defineConfig({
  testDir: 'tests',
  fullyParallel: true,
  reporter: [['list'], ['html', { open: 'never' }]],
  use: {
    baseURL,
    launchOptions: {
      // Without CHROMIUM, Playwright's own browser runs.
      ...(process.env.CHROMIUM ? { executablePath: process.env.CHROMIUM } : {}),
      args: [
        // Chromium's sandbox does not work as root.
        ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
        // Lets a mail show images of the application on this machine, with `message.open(page, { allowRemote: true })`.
        '--disable-features=LocalNetworkAccessChecks',
      ],
    },
  },
  webServer: { command: 'node app/server.mjs', url: baseURL, env: { PORT: port } },
})
