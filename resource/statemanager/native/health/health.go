package health

import (
	"fmt"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

const (
	// Cost is what one expression may cost for one object, in the units of CEL.
	Cost = 1_000_000
	// remembered is how many expressions are kept compiled.
	remembered = 1024
)

// fields are what an expression sees of an object.
var fields = []string{"apiVersion", "kind", "metadata", "spec", "status", "data"}

// Checks is a carrier.HealthChecks. It is safe for concurrent use.
type Checks struct {
	environment func() (*cel.Env, error)
	compiled    *lru.Cache
}

var _ carrier.HealthChecks = (*Checks)(nil)

// New returns Checks.
func New() *Checks {
	return &Checks{compiled: lru.New(remembered), environment: sync.OnceValues(func() (*cel.Env, error) {
		options := []cel.EnvOption{ext.Strings(), ext.Lists(), bounded(), ext.Sets(), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true)}
		for _, field := range fields {
			options = append(options, cel.Variable(field, cel.DynType))
		}
		return cel.NewEnv(options...)
	})}
}

// check are the expressions for a kind.
type check struct {
	kind schema.GroupVersionKind
	// questions are in the order in which they are asked.
	questions []question
}

// question is an expression, and what it tells of an object when it is true.
type question struct {
	place, text string
	program     cel.Program
	tells       status.Status
}

// Compile implements carrier.HealthChecks. The error is permanent and names the expression and the place in it.
func (c *Checks) Compile(given []v1alpha1.HealthCheckExpr) (carrier.HealthCheck, error) {
	checks := map[schema.GroupVersionKind]*check{}
	for i, expressions := range given {
		kind := schema.FromAPIVersionAndKind(expressions.APIVersion, expressions.Kind)
		if checks[kind] != nil {
			return nil, framework.Permanent(fmt.Errorf("healthCheckExprs[%d]: %s of %s is there twice: keep one of them", i, kind.Kind, expressions.APIVersion))
		}
		made := &check{kind: kind}
		for _, q := range []struct {
			field, text string
			tells       status.Status
		}{
			{"inProgress", expressions.InProgress, status.InProgressStatus},
			{"failed", expressions.Failed, status.FailedStatus},
			{"current", expressions.Current, status.CurrentStatus},
		} {
			place := fmt.Sprintf("healthCheckExprs[%d].%s", i, q.field)
			if q.text == "" && q.field != "current" {
				continue
			}
			program, err := c.program(q.text)
			if err != nil {
				return nil, framework.Permanent(fmt.Errorf("%s: %w", place, err))
			}
			made.questions = append(made.questions, question{place: place, text: q.text, program: program, tells: q.tells})
		}
		checks[kind] = made
	}
	return func(object *unstructured.Unstructured) *status.Result {
		if made := checks[object.GroupVersionKind()]; made != nil {
			return made.of(object)
		}
		return nil
	}, nil
}

// program compiles an expression.
func (c *Checks) program(text string) (cel.Program, error) {
	if known, ok := c.compiled.Get(text); ok {
		return known.(cel.Program), nil
	}
	environment, err := c.environment()
	if err != nil {
		return nil, fmt.Errorf("make an environment for CEL: %w", err)
	}
	ast, issues := environment.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("it is no expression: %w", issues.Err())
	}
	if is := ast.OutputType(); !is.IsExactType(cel.BoolType) && !is.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it is of the type %s: it has to be true or false", is)
	}
	program, err := environment.Program(ast, bounds()...)
	if err != nil {
		return nil, fmt.Errorf("it is no expression: %w", err)
	}
	c.compiled.Add(text, program)
	return program, nil
}

// of tells how an object is.
func (c *check) of(object *unstructured.Unstructured) *status.Result {
	if observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); found && err == nil && observed != object.GetGeneration() {
		return &status.Result{Status: status.InProgressStatus, Message: fmt.Sprintf(
			"its generation is %d, and the observed one is %d", object.GetGeneration(), observed)}
	}
	seen := make(map[string]any, len(fields))
	for _, field := range fields {
		if seen[field] = object.Object[field]; seen[field] == nil {
			seen[field] = map[string]any{}
		}
	}
	for _, q := range c.questions {
		answer, _, err := q.program.Eval(seen)
		switch {
		case err != nil:
			return &status.Result{Status: status.UnknownStatus, Message: fmt.Sprintf("%s can't be answered: %v", q.place, err)}
		case answer == types.True:
			return &status.Result{Status: q.tells, Message: fmt.Sprintf("%s is true: %s", q.place, q.text)}
		case answer != types.False:
			return &status.Result{Status: status.UnknownStatus, Message: fmt.Sprintf("%s is neither true nor false: %s", q.place, q.text)}
		}
	}
	current := c.questions[len(c.questions)-1]
	return &status.Result{Status: status.InProgressStatus, Message: fmt.Sprintf("%s is not true: %s", current.place, current.text)}
}
