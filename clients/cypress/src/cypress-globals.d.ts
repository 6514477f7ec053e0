/*
 * The part of Cypress' types that commands.ts uses. Cypress is not installed here: its global names contradict those of
 * Jest, and its installation downloads a browser. test/clients/cypress.test.ts checks commands.ts with the real types.
 */

declare namespace Cypress {
  interface Chainable<Subject> {
    task<S = Subject>(event: string, arg?: unknown, options?: { timeout?: number }): Chainable<S>
  }
}

declare const Cypress: {
  currentTest: { titlePath: string[] }
  Commands: {
    add<Name extends keyof Cypress.Chainable<unknown>>(
      name: Name,
      command: Cypress.Chainable<unknown>[Name],
    ): void
  }
}

declare const cy: Cypress.Chainable<unknown>
