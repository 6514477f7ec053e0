import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.ScenarioBuilder;
import io.gatling.javaapi.core.Simulation;
import io.gatling.javaapi.http.HttpProtocolBuilder;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Stream;

/** Users that sign up, each with an inbox of its own, and read the code in their mail. */
public class MailSimulation extends Simulation {

  private static final int USERS = Integer.getInteger("users", 10);
  private static final int SECONDS = Integer.getInteger("duration", 10);

  private final HttpProtocolBuilder mayfly =
      http.baseUrl(System.getenv().getOrDefault("MAYFLY_URL", "http://127.0.0.1:3000") + "/v1")
          .authorizationHeader("Bearer " + System.getenv("MAYFLY_KEY"))
          .shareConnections();

  private final ScenarioBuilder signUp =
      scenario("sign up")
          .feed(Stream.generate(MailSimulation::newCode).iterator())
          .exec(
              http("create inbox")
                  .post("/inboxes")
                  .body(StringBody("{\"duration\": \"10m\"}"))
                  .asJson()
                  .check(status().is(201))
                  .check(jsonPath("$.id").saveAs("inbox"))
                  .check(jsonPath("$.address").saveAs("address")))
          .exitHereIfFailed()
          .exec(
              // In place of your application: call its sign-up here, with #{address}.
              http("put in mail")
                  .post("/inboxes/#{inbox}/messages")
                  .body(
                      StringBody(
                          """
                          {"from": "no-reply@app.example", "subject": "Welcome", "text": "Your code is #{code}."}
                          """))
                  .asJson())
          .exec(
              http("wait for mail")
                  .get("/inboxes/#{inbox}/messages/wait?has_code=true&timeout=30")
                  .check(jsonPath("$.codes[0].value").isEL("#{code}")))
          .exec(http("delete inbox").delete("/inboxes/#{inbox}"));

  {
    setUp(signUp.injectOpen(rampUsers(USERS).during(SECONDS)))
        .protocols(mayfly)
        .assertions(global().failedRequests().count().is(0L));
  }

  private static Map<String, Object> newCode() {
    return Map.of("code", String.valueOf(ThreadLocalRandom.current().nextInt(100_000, 1_000_000)));
  }
}
