package plan_test

import (
	"fmt"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// Changes are shown without what must not be seen.
func ExampleFieldChange() {
	fmt.Println(plan.FieldChange{Path: "spec.replicas", Old: 1, New: 2})
	fmt.Println(plan.FieldChange{Path: "metadata.labels.tier", Old: "web"})
	fmt.Println(plan.FieldChange{Path: "data.password", Old: "hunter2", New: "correct-horse"}.Hidden())
	// Output:
	// spec.replicas: 1 -> 2
	// metadata.labels.tier: "web" removed
	// data.password: (sensitive, changed)
}
