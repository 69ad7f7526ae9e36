package oncall

import "time"

// Severities of alerts.
const (
	// Critical is for what has to be looked at now.
	Critical = "critical"
	// Warning is for what has to be looked at today.
	Warning = "warning"
)

// Alert is an alert rule with its runbook.
type Alert struct {
	Name string
	// Query is in PromQL. It is true while something is amiss.
	Query string
	// For is how long it has to be true.
	For      time.Duration
	Severity string
	// Summary says in a line what is amiss, with the labels of the series as {{ $labels.name }}.
	Summary string
	// Means, Look and Mend are the runbook: what it means for users, where to look, and what to do.
	Means, Look, Mend string
}

// Alerts are those of every operator.
var Alerts = []Alert{
	{
		Name: "OperatorkitNobodyWorks", Severity: Critical, For: 5 * time.Minute,
		Query:   `max by (namespace, operator) (operatorkit_operator_leading) == 0`,
		Summary: "No replica of the operator {{ $labels.operator }} works.",
		Means:   "Objects are not reconciled: changes have no effect, deletions don't complete. What is there stays as it is.",
		Look: "The logs of all replicas, for \"lease\" and \"refuses\"; /readyz of each, which names what is missing; the " +
			"Lease, whose holder may be gone.",
		Mend: "A source that does not sync, or a right that is lacking, is named by /readyz and in the log with the rule to " +
			"add. A Lease that nobody renews runs out by itself after its duration.",
	},
	{
		Name: "OperatorkitIsNotThere", Severity: Critical, For: 5 * time.Minute,
		Query: `count by (namespace, operator) (last_over_time(operatorkit_operator_leading[6h])) ` +
			`unless count by (namespace, operator) (operatorkit_operator_leading) or absent(operatorkit_operator_leading)`,
		Summary: "No replica of the operator {{ or $labels.operator $labels.job }} is there.",
		Means: "Objects are not reconciled: changes have no effect, deletions don't complete. What is there stays as it is. All other alerts " +
			"are silent, because they are about what replicas say.",
		Look: "The Deployment and its Pods: an image that can't be pulled, a flag that is refused, a quota that is used up, replicas set to 0; " +
			"then the ServiceMonitor, and the network policies between Prometheus and the Pods.",
		Mend: "Mend the Deployment, or go back to the version before. If the operator was taken away on purpose, take its rule away with it. " +
			"A rule for all operators ends by itself after six hours, as long as there is another operator.",
	},
	{
		Name: "OperatorkitLeaseIsHardToKeep", Severity: Warning, For: 5 * time.Minute,
		Query:   `increase(operatorkit_operator_lease_renewals_total{result="failure"}[10m]) > 3`,
		Summary: "The leader of the operator {{ $labels.operator }} fails to renew its lease again and again.",
		Means: "The leader is about to lose its lease. It stops working then, another replica takes over, and reconciliations " +
			"under way are cut short.",
		Look: "The answers of the API server in operatorkit_client_requests_total, its latency, and the processor time that the Pod gets.",
		Mend: "Mend the API server or the way to it. If it is slow at times, give --leader-election-lease-duration and " +
			"--leader-election-renew-deadline more time.",
	},
	{
		Name: "OperatorkitObjectsFail", Severity: Warning, For: 5 * time.Minute,
		Query:   `time() - (operatorkit_framework_failing_since_timestamp_seconds > 0) > 900`,
		Summary: "An object of the framework {{ $labels.framework }} has been failing for more than a quarter of an hour.",
		Means:   "At least one object is not what its owner wants. Others are not affected.",
		Look: "The page of the inspector, which lists what fails with the error; the events and the status of the object; " +
			"\"explain NAME\" tells which step failed.",
		Mend: "What the error says. It is tried again with a growing pause, and at once when the object changes.",
	},
	{
		Name: "OperatorkitQueueIsStuck", Severity: Warning, For: 10 * time.Minute,
		Query:   `operatorkit_framework_queue_age_seconds > 600`,
		Summary: "A key of the framework {{ $labels.framework }} has been waiting for a worker for more than ten minutes.",
		Means:   "Changes take effect late: there is more work than the workers get done, or steps hang.",
		Look: "operatorkit_framework_active_workers, and operatorkit_framework_step_duration_seconds by resource: which step " +
			"takes the time? The page shows what each worker does right now.",
		Mend: "Mend or limit the slow step; raise --workers if what they wait for is elsewhere; look at --kube-api-qps if one is set.",
	},
	{
		Name: "OperatorkitDeletionIsPending", Severity: Warning, For: 15 * time.Minute,
		Query:   `time() - (operatorkit_framework_oldest_deletion_timestamp_seconds > 0) > 3600`,
		Summary: "A deletion in the framework {{ $labels.framework }} has been pending for more than an hour.",
		Means:   "An object can't go, and with it its namespace. What belongs to it may still be there, and cost.",
		Look:    "The object with the oldest deletionTimestamp: its finalizers, its events, and \"explain NAME\".",
		Mend:    "What keeps the clean-up from succeeding. Take the finalizer off by hand only when what it stands for is gone.",
	},
	{
		Name: "OperatorkitSourceIsOutOfContact", Severity: Critical, For: 5 * time.Minute,
		Query:   `operatorkit_framework_source_staleness_seconds > 300 or operatorkit_framework_source_synced == 0`,
		Summary: "The source {{ $labels.source }} of the framework {{ $labels.framework }} is out of contact, or was never complete.",
		Means:   "The operator does not see changes. It writes nothing by what it does not know, and works with what it knows.",
		Look:    "/readyz, which says why; the log for the rule that is lacking, or the definition that is not served.",
		Mend:    "Apply the definition (\"crds --apply\"), add the rule, or mend the way to what the source reads.",
	},
	{
		Name: "OperatorkitPanics", Severity: Warning,
		Query:   `increase(operatorkit_framework_panics_total[15m]) > 0`,
		Summary: "Code of the framework {{ $labels.framework }} has panicked.",
		Means:   "A bug in a resource: the object fails, the operator goes on.",
		Look:    "The log: the error has the stack.",
		Mend:    "Mend the resource. Until then the version before is the better one.",
	},
	{
		Name: "OperatorkitObjectsAreHeld", Severity: Warning, For: 15 * time.Minute,
		Query:   `operatorkit_framework_unmatched_objects{finalizer="held"} > 0`,
		Summary: "Objects of the framework {{ $labels.framework }} have its finalizer, and no resource set handles them.",
		Means:   "They are not reconciled, and can't be deleted: a version of the logic that once handled them is gone.",
		Look:    "The events with the reason NoResourceSet; the label by which resource sets are chosen.",
		Mend:    "Give the objects the label of a set that there is, or bring the set back.",
	},
	{
		Name: "OperatorkitUpgradeIsHalted", Severity: Critical, For: time.Minute,
		Query:   `max by (namespace, operator) (operatorkit_operator_upgrade_halted) == 1`,
		Summary: "The upgrade of the operator {{ $labels.operator }} is halted, because objects are not ready after it changed them.",
		Means: "The objects that the new build has changed may be broken: no more of them than the budget allows. All others stay as the " +
			"former build left them: they are served, but nobody repairs them. Changes by users and deletions go through.",
		Look: "\"upgrade status\" lists the objects that have failed, and why; the events with the reason UpgradeFailed on them; the log of the operator.",
		Mend: "Go back to the former image: it has the same budget. Or fix the cause and run \"upgrade resume\". If the objects are fine " +
			"in spite of it, \"upgrade finish\" lets the new build change all of them at once.",
	},
	{
		Name: "OperatorkitChangesAreUndone", Severity: Warning, For: 15 * time.Minute,
		Query:   `operatorkit_framework_fights > 0`,
		Summary: "Changes of the framework {{ $labels.framework }} are undone again and again.",
		Means: "Something else writes the same fields. The operator pauses between two tries, for up to an hour: until then the other " +
			"value stays.",
		Look: "The page, which lists the fields and their other managers; the events with the reason ChangeUndone. No other manager " +
			"means an admission webhook, a default that does not converge, or a second copy of the operator.",
		Mend: "Let one of the two leave the fields alone. The operator tries again after its pause, and at once when the spec of the " +
			"object changes.",
	},
	{
		Name: "OperatorkitRequestsAreRefused", Severity: Warning, For: 10 * time.Minute,
		Query:   `sum by (namespace, pod, code) (rate(operatorkit_client_requests_total{code=~"401|403"}[5m])) > 0`,
		Summary: "The API server refuses requests of the operator ({{ $labels.code }}).",
		Means:   "A part of the work can't be done.",
		Look:    "The log: \"refuses a request for lack of rights\" comes with the rule that is lacking.",
		Mend:    "Add the rule, best by printing the manifests anew with the version that runs.",
	},
	{
		Name: "OperatorkitRequestsFail", Severity: Warning, For: 10 * time.Minute,
		Query: `sum by (namespace, pod) (rate(operatorkit_client_requests_total{code=~"5..|none"}[5m])) ` +
			`/ sum by (namespace, pod) (rate(operatorkit_client_requests_total[5m])) > 0.1`,
		Summary: "More than a tenth of the operator's requests to the API server fail.",
		Means:   "Reconciliations fail and are tried again; changes take effect late.",
		Look:    "The API server, and what stands between: operatorkit_client_request_duration_seconds by verb and host.",
		Mend:    "Mend the API server. The operator goes on by itself.",
	},
}
