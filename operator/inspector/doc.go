// Package inspector shows people what an operator does: a page, served by the operator itself, and the same as JSON.
//
// An [Inspector] is the observer of frameworks. It remembers their last reconciliations, within limits, and shows for each
// object what triggered them, what every resource took and changed, what failed and when it is tried again. Operators that
// are made with operator.Dependencies need nothing but an address. By hand it reads:
//
//	page, err := inspector.New(inspector.Config{Name: "website-operator", Logger: logger})
//	f, err := framework.New(framework.Config{Source: websites, Resources: resources, Logger: logger, Observer: page})
//	page.Watch(f)
//	go page.Run(ctx)
//	server := &http.Server{Addr: page.Address(), Handler: page, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
//	err = server.ListenAndServe()
//
// and with operator.Config.Inspector the last three lines are the operator's, with TLS if there is a certificate
// ([Inspector.TLSConfig]). All pages work without a script, which only keeps them up to date, and nothing is loaded from elsewhere.
//
// # Promises
//
//   - It is read-only. All it does is to plan an object and to have its graphs drawn, and that changes nothing.
//   - On loopback it answers to loopback's own names only. Elsewhere there is TLS, and there and with an [Authorizer] every request is
//     authenticated and authorised: 401 without a valid bearer token, 403 without permission. A handler that is mounted
//     elsewhere without an Authorizer answers nothing.
//   - Requests that other sites have a browser make are refused, those that only look too; a link that somebody follows is none of
//     them. The Content-Security-Policy allows no inline script, style or foreign source, and every value is escaped.
//   - Values of Secrets, and others that are marked as sensitive, are not shown: records and plans do not have them. No
//     object of a source is shown, only what resources change, and what the operator's author draws of it.
//   - Memory is bounded by Config, whatever the objects hold. Objects that fail are forgotten last, and are counted, found and told
//     since when they fail when they are forgotten too.
//   - Where replicas share the objects (ShareBy), each answers for all: a question about an object is answered by the replica that has it, which is
//     asked in the name of the user, by TLS with the one certificate that it has told of, or on loopback. A question is passed on once.
//   - It holds up nobody: neither searches nor pages take a lock that workers need for longer than it takes to look at one object,
//     the page of an object waits a second for its graphs at most, and requests, bodies, lists and what is done at once are bounded.
//
// # Access
//
// From one's own machine, kubectl port-forward reaches an inspector that listens on loopback in a Pod. To listen elsewhere,
// it needs a certificate, the operator the cluster role system:auth-delegator, and those who look a role such as:
//
//	rules:
//	- nonResourceURLs: ["/inspector", "/inspector/*"]
//	  verbs: ["get", "plan"]
//
// # JSON
//
// All is below /inspector/api/v1/. Times are RFC 3339, durations integers of nanoseconds. Fields are added, but none is
// removed or given another meaning within v1. An answer other than 200 is {"error": "why"}, or plain text when access is
// refused.
//
//	GET overview                                 Overview: frameworks, sources, resources, samples, failing objects
//	GET objects?kind=&namespace=&name=           ObjectList: objects by exact name; kind is the kind of the objects or the
//	                                             name of the framework or its first part, in any case: site, sites
//	           &framework=&state=&q=             also by framework, state (such as failing), and
//	                                             words found in names and errors, 32 at most
//	           &limit=&offset=                   50 at a time by default, 1000 at most
//	GET object?framework=&namespace=&name=       Object: its last reconciliations, the newest first
//	GET graphs?framework=&namespace=&name=       GraphList: what the operator draws of the object (Inspector.Draw)
//	          &graph=&format=                    one of them, the first by default, as dot, mermaid or svg
//	POST plan?framework=&namespace=&name=        plan.Plan of the next reconciliation
//
// To explain an object of which kind and name are known, ask for objects and then for the object of each one found.
//
//	$ curl -s '127.0.0.1:8082/inspector/api/v1/object?framework=websites.example.com&namespace=default&name=home'
//	{"framework":"websites.example.com","namespace":"default","name":"home","state":"failing","error":"…","reconciliations":[…]}
package inspector
