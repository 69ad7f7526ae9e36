package guards

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// namespaceVariable is the variable that takes a request.
const namespaceVariable = "namespaceObject"

type matcher = func(context.Context, framework.GuardInput) (bool, error)

// compiler compiles expressions.
type compiler struct {
	env        *cel.Env
	namespaces *namespaces
}

// declare returns the type of an object with fields of these types.
func declare(name string, fields map[string]*apiservercel.DeclType) *apiservercel.DeclType {
	declared := map[string]*apiservercel.DeclField{}
	for field, of := range fields {
		declared[field] = apiservercel.NewDeclField(field, of, true, nil, nil)
	}
	return apiservercel.NewObjectType("operatorkit."+name, declared)
}

func newCompiler(reader client.Reader) (*compiler, error) {
	text := apiservercel.StringType
	texts := apiservercel.NewMapType(text, text, -1)
	field := declare("FieldChange", map[string]*apiservercel.DeclType{
		"path": text, "from": apiservercel.DynType, "to": apiservercel.DynType, "sensitive": apiservercel.BoolType,
	})
	change := declare("Change", map[string]*apiservercel.DeclType{
		"action": text, "apiVersion": text, "kind": text, "namespace": text, "name": text, "uid": text,
		"labels": texts, "annotations": texts, "description": text, "replaces": apiservercel.BoolType,
		"fields": apiservercel.NewListType(field, -1),
	})
	operator := declare("Operator", map[string]*apiservercel.DeclType{"name": text, "framework": text, "resource": text})
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		DeclTypes:         []*apiservercel.DeclType{change, field, operator},
		EnvOptions: []cel.EnvOption{
			cel.Variable("change", change.CelType()), cel.Variable("operator", operator.CelType()),
			cel.Variable("object", cel.DynType), cel.Variable(namespaceVariable, cel.DynType),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	return &compiler{env: set.StoredExpressionsEnv(), namespaces: &namespaces{reader, cache.NewLRUExpireCache(maxRemembered)}}, nil
}

// compile makes a matcher of an expression.
func (c *compiler) compile(expression string) (matcher, []framework.Right, error) {
	ast, issues := c.env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, nil, fmt.Errorf("%w\nit knows change, object, namespaceObject and operator", err)
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, nil, fmt.Errorf("it is a %s: make it a bool, for example by == true", ast.OutputType())
	}
	// The environment has the limit on costs.
	program, err := c.env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return nil, nil, err
	}
	var rights []framework.Right
	if strings.Contains(expression, namespaceVariable) {
		rights = []framework.Right{{Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), ClusterScoped: true, Verbs: []string{"get"}}}
	}
	return func(ctx context.Context, in framework.GuardInput) (bool, error) {
		result, _, err := program.ContextEval(ctx, c.variables(ctx, in))
		if err != nil {
			return false, err
		}
		return result == types.True, nil
	}, rights, nil
}

// variables are the values of an expression. Those that are functions are called if the expression
// asks for them.
func (c *compiler) variables(ctx context.Context, in framework.GuardInput) map[string]any {
	return map[string]any{
		"change": changeOf(in.Change),
		"object": func() any {
			return plan.Shown(in.Object, func(text string) string { return secretscontext.Scrub(ctx, text) })
		},
		namespaceVariable: func() any {
			namespace, err := c.namespaces.get(ctx, in.Change.Object.Namespace)
			if err != nil {
				return types.WrapErr(fmt.Errorf("read namespace %q: %w", in.Change.Object.Namespace, err))
			}
			return namespace
		},
		"operator": map[string]any{"name": in.Operator, "framework": in.Framework, "resource": in.Resource},
	}
}

// changeOf returns a change with all its fields.
func changeOf(c plan.Change) map[string]any {
	fields := make([]any, 0, len(c.Fields))
	for _, f := range c.Fields {
		fields = append(fields, map[string]any{"path": f.Path, "from": f.Old, "to": f.New, "sensitive": f.Sensitive})
	}
	return map[string]any{
		"action": string(c.Action), "apiVersion": c.Object.APIVersion, "kind": c.Object.Kind,
		"namespace": c.Object.Namespace, "name": c.Object.Name, "uid": string(c.Object.UID),
		"labels": c.Labels, "annotations": c.Annotations, "description": c.Description,
		"replaces": c.Replaces(), "fields": fields,
	}
}
