//! `/api/v1/tools`: the tools that their owner can bind.

use serde_json::{Value, json};

use super::bodies::BodyFields;
use super::resource::{RecordContext, RestRecord, Stored, stored_by};
use super::targets::Targets;
use super::{refuse, values};
use crate::error::{ApiError, FieldProblem};
use store::{ApiKey, NewTool, ToolChange, ToolId, ToolRecord};

impl RestRecord for ToolRecord {
    const ROUTE: &'static str = "tools";
    type Id = ToolId;
    type New = NewTool;
    type Change = ToolChange;

    stored_by!(tools, tool, create_tool, update_tool, delete_tool, *);

    fn id(text: &str) -> Result<ToolId, ApiError> {
        let missing = || ApiError::not_found("there is no such tool: its id is a number");
        values::number(text).map(ToolId).ok_or_else(missing)
    }

    fn not_found(id: &ToolId) -> ApiError {
        ApiError::not_found(format!("there is no tool {id}"))
    }

    fn answer(self, _: Option<&ApiKey>, targets: &mut Targets) -> Value {
        json!({
            "id": self.id.0,
            "name": self.name,
            "description": self.description,
            "server": self.server,
            "tool": self.tool,
            // Why the tool is unavailable, if that is known.
            "missing": targets.missing(&self.owner, &self.server, &self.tool),
            "user_id": self.owner,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        })
    }

    fn location(&self) -> Option<String> {
        Some(format!("/api/v1/tools/{}", self.id))
    }

    fn read_new(
        context: &RecordContext,
        _: &mut ApiKey,
        mut fields: BodyFields,
    ) -> Result<(NewTool, Vec<FieldProblem>), ApiError> {
        let allow_missing = values::allow_missing(&mut fields);
        let new = NewTool {
            owner: context.principal.owner(),
            name: fields.required("name", values::tool_name),
            description: fields.optional("description", values::description),
            server: fields.required("server", values::server),
            tool: fields.required("tool", values::upstream_tool),
        };
        fields.done()?;
        let target = (&*new.server, &*new.tool);
        let mut targets = context.records.targets();
        let problem = targets.check(&new.owner, target, allow_missing);
        let problems = Vec::from_iter(problem);
        Ok((new, problems))
    }

    async fn read_change(
        context: &RecordContext,
        id: &ToolId,
        mut fields: BodyFields,
    ) -> Result<ToolChange, ApiError> {
        let allow_missing = values::allow_missing(&mut fields);
        let change = ToolChange {
            name: fields.change("name", values::tool_name),
            description: fields.removable("description", values::description),
            server: fields.change("server", values::server),
            tool: fields.change("tool", values::upstream_tool),
        };
        fields.done()?;
        if (change.server.is_some() || change.tool.is_some())
            && let Some(before) = ToolRecord::find(context, id).await?
        {
            let server = change.server.as_ref().unwrap_or(&before.server);
            let tool = change.tool.as_ref().unwrap_or(&before.tool);
            let mut targets = context.records.targets();
            let problem = targets.check(&before.owner, (server, tool), allow_missing);
            refuse(Vec::from_iter(problem))?;
        }
        Ok(change)
    }
}
