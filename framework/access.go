package framework

import "github.com/operatorkit/operatorkit/internal/access"

// engine implements access.Engine. Its methods are beside the code that they call.
type engine struct{ *Framework }

func init() {
	access.EngineOf = func(f any) access.Engine { return engine{f.(*Framework)} }
	access.Advice = adviceOn
	access.RetriesAfter, access.LastTry = retriesAfter, lastTry
}
